//go:build !linux

package dynlib

import (
	"errors"
	"runtime"
)

// Library would be a loaded library.
type Library struct{ Path string }

// Open says that there is no CUDA here.
func Open(string, ...string) (*Library, error) { return nil, errors.New("no CUDA on " + runtime.GOOS) }

// Bind binds nothing: there is no library.
func (l *Library) Bind(any, string) error { return errors.New("no CUDA on " + runtime.GOOS) }
