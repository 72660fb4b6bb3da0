package journal

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// remoteSystems are file systems whose locks and writes depend on a network.
var remoteSystems = map[uint32]string{
	unix.NFS_SUPER_MAGIC:   "NFS",
	unix.SMB_SUPER_MAGIC:   "SMB",
	unix.CIFS_SUPER_MAGIC:  "CIFS",
	unix.SMB2_SUPER_MAGIC:  "SMB",
	unix.FUSE_SUPER_MAGIC:  "FUSE",
	unix.CEPH_SUPER_MAGIC:  "Ceph",
	unix.V9FS_MAGIC:        "9p",
	unix.AFS_SUPER_MAGIC:   "AFS",
	unix.AFS_FS_MAGIC:      "AFS",
	unix.CODA_SUPER_MAGIC:  "Coda",
	unix.NCP_SUPER_MAGIC:   "NCP",
	unix.OCFS2_SUPER_MAGIC: "OCFS2",
	0x01161970:             "GFS2",
	0x0BD00BD0:             "Lustre",
	0x19830326:             "BeeGFS",
	0x47504653:             "GPFS",
	0x786F4256:             "a folder of the host",
}

// localFuse are kinds of FUSE below which there is a disk of this machine. Whatever else speaks FUSE may be anywhere, as network
// volumes are.
var localFuse = map[string]bool{"fuseblk": true, "fuse.fuse-overlayfs": true}

var errRemote = errors.New("is on a network file system")

// local returns an error if a path lies on a network file system.
func local(path string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return fmt.Errorf("tell its file system: %w", err)
	}
	return judge(uint32(stat.Type), func() string { return mountKind(path) })
}

func judge(magic uint32, mount func() string) error {
	name, remote := remoteSystems[magic]
	if !remote || magic == unix.FUSE_SUPER_MAGIC && localFuse[mount()] {
		return nil
	}
	return fmt.Errorf("%w (%s)", errRemote, name)
}

// mountKind is the type of the mount that a path lies on, "" if that cannot be told.
func mountKind(path string) string {
	var stat unix.Stat_t
	if unix.Stat(path, &stat) != nil {
		return ""
	}
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	return kindOf(bufio.NewScanner(file), fmt.Sprintf("%d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev)))
}

// kindOf finds a device, "0:52", in lines such as "36 35 0:52 / /mnt rw - fuse.s3fs s3fs rw".
func kindOf(lines *bufio.Scanner, device string) string {
	for lines.Scan() {
		own, system, _ := strings.Cut(lines.Text(), " - ")
		left, right := strings.Fields(own), strings.Fields(system)
		if len(left) > 2 && left[2] == device && len(right) > 0 {
			return right[0]
		}
	}
	return ""
}
