//go:build !linux

package gpu

import "errors"

func inMemory(string) (Program, error) { return Program{}, errors.ErrUnsupported }
