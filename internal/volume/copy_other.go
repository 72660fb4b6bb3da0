//go:build !linux

package volume

import "os"

func copyRange(*os.File, *os.File, int) int { return 0 }
