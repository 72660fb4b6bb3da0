package host

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const mountsFile = "/proc/self/mountinfo"

// mount is one line of the mount table.
type mount struct {
	root    string // what of the file system is mounted
	point   string
	options []string // of the mount and of the file system
	kind    string   // "overlay", "cgroup2"
}

func (m mount) readOnly() bool { return slices.Contains(m.options, "ro") }

// mounts is the mount table, none where the system has no such file.
func (b box) mounts() ([]mount, error) {
	text, ok, err := b.read(mountsFile)
	if err != nil || !ok {
		return nil, err
	}
	mounts, err := parseMounts(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.at(mountsFile), err)
	}
	return mounts, nil
}

// mountAt finds what is mounted at a path: the last of several hides the others.
func mountAt(mounts []mount, path string) (mount, bool) {
	for _, m := range slices.Backward(mounts) {
		if m.point == path {
			return m, true
		}
	}
	return mount{}, false
}

// parseMounts reads lines such as "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue".
func parseMounts(text string) ([]mount, error) {
	var mounts []mount
	for line := range strings.Lines(text) {
		own, system, ok := strings.Cut(strings.TrimSpace(line), " - ")
		left, right := strings.Fields(own), strings.Fields(system)
		if !ok || len(left) < 6 || len(right) < 1 {
			return nil, fmt.Errorf("cannot read the line %q", line)
		}
		options := strings.Split(left[5], ",")
		if len(right) > 2 {
			options = append(options, strings.Split(right[2], ",")...)
		}
		mounts = append(mounts, mount{root: unescape(left[3]), point: unescape(left[4]), options: options, kind: right[0]})
	}
	return mounts, nil
}

// unescape undoes the octal escapes that stand for blanks and backslashes: "\040".
func unescape(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 || i+4 > len(s) {
			return b.String() + s
		}
		b.WriteString(s[:i])
		if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
			b.WriteByte(byte(c))
			s = s[i+4:]
			continue
		}
		b.WriteByte('\\')
		s = s[i+1:]
	}
}
