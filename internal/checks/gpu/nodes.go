package gpu

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// controlNodes are the nodes that every program with CUDA opens first. To open one that belongs to a single GPU would
// wake that GPU up.
var controlNodes = []string{"/dev/nvidiactl", "/dev/nvidia-uvm"}

// blocked says which control node this process cannot open, and what that means; empty where all is well.
func blocked(root string) string {
	for _, node := range controlNodes {
		file, err := os.OpenFile(root+node, os.O_RDWR, 0) //nolint:gosec // below the root
		if err == nil {
			_ = file.Close() // it was only opened
			continue
		}
		return fmt.Sprintf("; %s %s", node, whyBlocked(err))
	}
	return ""
}

func whyBlocked(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "is not in this container"
	case errors.Is(err, syscall.EPERM):
		return "is blocked by the device cgroup"
	case errors.Is(err, syscall.EACCES):
		return "may not be opened by this user"
	case errors.Is(err, syscall.ENODEV), errors.Is(err, syscall.ENXIO):
		return "has no driver behind it"
	}
	return "cannot be opened: " + err.Error()
}
