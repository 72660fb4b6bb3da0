package gpu

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// inMemory makes a file that has no name and may be executed. Old kernels do not know MFD_EXEC; machines that forbid
// executing such files refuse to make one.
func inMemory(name string) (Program, error) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		return Program{}, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	}
	if err != nil {
		return Program{}, fmt.Errorf("%w: memfd_create: %w", errors.ErrUnsupported, err)
	}
	return Program{Path: imagePath, image: os.NewFile(uintptr(fd), name)}, nil
}
