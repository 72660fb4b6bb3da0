// Package emulator is a local Runpod: the endpoint API and the worker API over one queue.
package emulator
