//go:build !linux

package gpu

import (
	"errors"
	"time"
)

func kernelLog(string) ([]logged, time.Duration, error) { return nil, 0, errors.ErrUnsupported }
