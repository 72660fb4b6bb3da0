// Package proc runs a child program as a process group of its own.
package proc
