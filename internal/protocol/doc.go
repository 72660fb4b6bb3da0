// Package protocol holds what the platform and its workers say to each other:
// the job, its states and outcome, the URL templates, the limits and the shape
// of an error. It knows no transport; protocol/client makes the calls and
// protocol/server answers them.
package protocol
