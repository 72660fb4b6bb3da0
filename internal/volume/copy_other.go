//go:build !linux

package volume

import (
	"errors"
	"os"
)

func copyRange(*os.File, *os.File, int) (int, error) { return 0, errors.ErrUnsupported }
