// Package echo is the built-in handler that returns the input of a job as its output.
package echo
