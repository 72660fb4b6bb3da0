package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/config"
)

const (
	// minShm is above what container engines give who asks for nothing: 64 MB, too little for the data loaders of
	// PyTorch and for NCCL, which die of it with a bus error.
	minShm = 65 << 20
	// minFiles is the least that a program must be able to raise its limit of open files to.
	minFiles = 4096
	// minInodes is the least share of free inodes, in percent: without one no file can be created, however much space
	// is free.
	minInodes = 5
)

// System looks at what programs trip over later. All its findings are warnings.
func System(cfg checks.Config) checks.Check {
	return checks.Check{
		ID: "system", Name: "_system_check", Title: "System", Phase: checks.Early, Builtin: true,
		Run: system{
			box: here, lookup: cfg.Lookup, asker: asking, usage: usage, openFiles: openFiles,
			temp: os.TempDir(), write: writeProbe,
		}.run,
	}
}

type system struct {
	box       box
	lookup    config.Lookup
	asker     *asker
	usage     func(path string) (space, error)
	openFiles func() (uint64, error)
	temp      string
	write     func(dir string, bytes int) error // see writeProbe
}

func (s system) run(ctx context.Context) checks.Result {
	var res checks.Result
	s.sharedMemory(ctx, &res)
	s.files(&res)
	s.inodes(ctx, &res)
	s.tempFolder(ctx, &res)
	s.volumes(ctx, &res)
	if res.Status == checks.Pass {
		res.Summary = "shared memory, open files, inodes, temporary files and volumes are fine"
	}
	return res
}

func (s system) sharedMemory(ctx context.Context, res *checks.Result) {
	const path = "/dev/shm"
	shm, err := ask(ctx, s.asker, path, func() (space, error) { return s.usage(s.box.at(path)) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		warn(res, "there is no "+path, "Start the container with --shm-size.")
	case err != nil:
		warn(res, path+": "+err.Error(), "See why "+path+" cannot be looked at.")
	default:
		res.Facts = append(res.Facts, checks.Fact{Name: "shm_gb", Value: inGB(shm.total), Text: amount(shm.total)})
		if shm.total < minShm {
			warn(res, path+" has only "+amount(shm.total), "Start the container with a larger --shm-size if it loads data with several processes.")
		}
	}
}

// files looks at the hard limit: the runtime of this very program raises its own soft limit, so that it tells nothing.
func (s system) files(res *checks.Result) {
	n, err := s.openFiles()
	if err != nil {
		warn(res, "cannot tell how many files may be open: "+err.Error(), "See why the limits of this process cannot be read.")
		return
	}
	res.Facts = append(res.Facts, checks.Fact{Name: "max_open_files", Value: n})
	if n < minFiles {
		warn(res, fmt.Sprintf("at most %d files may be open", n), "Start the container with a higher --ulimit nofile.")
	}
}

func openFiles() (uint64, error) {
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return limit.Max, err
}

// inodes looks at /. A file system without a table of inodes says 0 of 0.
func (s system) inodes(ctx context.Context, res *checks.Result) {
	root, err := ask(ctx, s.asker, "/", func() (space, error) { return s.usage(s.box.at("/")) })
	if err != nil || root.inodes == 0 {
		return // what is wrong with / as such, disk says
	}
	share := 100 * float64(root.freeInodes) / float64(root.inodes)
	res.Facts = append(res.Facts, checks.Fact{Name: "free_inodes_percent", Value: share, Text: fmt.Sprintf("%.0f %%", share)})
	if share < minInodes {
		warn(res, fmt.Sprintf("only %d inodes of / are free (%.1f %%)", root.freeInodes, share),
			"Delete small files: without an inode no file can be created.")
	}
}

func (s system) tempFolder(ctx context.Context, res *checks.Result) {
	_, err := ask(ctx, s.asker, s.temp, func() (struct{}, error) { return struct{}{}, s.write(s.temp, 0) })
	if err != nil {
		warn(res, "no temporary files in "+s.temp+": "+cause(err), "Make "+s.temp+" writable, or point TMPDIR elsewhere.")
	}
}
