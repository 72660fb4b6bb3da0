package volume

import (
	"os"

	"golang.org/x/sys/unix"
)

// clone makes a file share the blocks of another one, if they are on one file system that can do that.
func clone(to, from *os.File) bool {
	return unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) == nil
}
