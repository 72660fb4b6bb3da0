package gpu

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// maxRecords bounds the reading of a log that grows while it is read.
const maxRecords = 100_000

// kernelLog reads what the kernel logged, and the time on its clock. In most containers it may not be read.
func kernelLog(root string) ([]logged, time.Duration, error) {
	fd, err := unix.Open(root+"/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("open /dev/kmsg: %w", err)
	}
	defer unix.Close(fd) //nolint:errcheck // it was only read
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return nil, 0, fmt.Errorf("read the clock: %w", err)
	}
	var entries []logged
	record := make([]byte, 8<<10) // the kernel's own limit; each read gives one
	for range maxRecords {
		n, err := unix.Read(fd, record)
		if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.EINTR) {
			continue // overwritten while we read: the next read goes on with what is left
		}
		if errors.Is(err, unix.EAGAIN) || err == nil && n == 0 {
			break
		}
		if err != nil {
			return nil, 0, fmt.Errorf("read /dev/kmsg: %w", err)
		}
		if l, ok := parseRecord(string(record[:n])); ok {
			entries = append(entries, l)
		}
	}
	return entries, time.Duration(now.Nano()), nil
}
