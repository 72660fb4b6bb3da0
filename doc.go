// Package runpodctlworker is the root of the module; the program is in cmd/runpodctl-worker.
package runpodctlworker
