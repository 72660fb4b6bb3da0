package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/config"
)

const (
	// probeBytes are written to a volume, and must be there within slowWrite: that is 2 MB a second.
	probeBytes = 512 << 10
	slowWrite  = 250 * time.Millisecond
)

// volumes judges the network volumes: those that are there, and the one that the platform says there is.
func (s system) volumes(ctx context.Context, res *checks.Result) {
	mounts, err := s.box.mounts()
	if err != nil {
		warn(res, "cannot tell what is mounted: "+err.Error(), "See that /proc is that of this container.")
		return
	}
	findings := make([]finding, len(volumePaths))
	var looked sync.WaitGroup
	for i, path := range volumePaths {
		looked.Go(func() { findings[i] = s.volume(ctx, mounts, path) })
	}
	looked.Wait()
	for i, path := range volumePaths {
		f := findings[i]
		if f.state != "" {
			res.Facts = append(res.Facts, checks.Fact{Name: factName(path, "state"), Value: f.state})
		}
		if f.remedy != "" {
			warn(res, "volume "+path+": "+f.state, f.remedy)
		}
	}
}

// finding is the state of one volume; no state: nobody expects one. Only a bad one has a remedy.
type finding struct{ state, remedy string }

func (s system) volume(ctx context.Context, mounts []mount, path string) finding {
	m, mounted := mountAt(mounts, path)
	expected := path == s.expectedVolume()
	if !mounted {
		return s.unmounted(ctx, path, expected)
	}
	if m.readOnly() {
		return finding{"read-only", "Attach the volume writable, if the handler writes to it."}
	}
	began := time.Now()
	_, err := ask(ctx, s.asker, path, func() (struct{}, error) { return struct{}{}, s.write(s.box.at(path), probeBytes) })
	took := time.Since(began)
	switch {
	case errors.Is(err, errSilent):
		return finding{errSilent.Error(), "See whether the storage behind it can be reached; restart the worker elsewhere."}
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return finding{"full", "Delete what it need not keep, or make it larger."}
	case errors.Is(err, unix.EROFS):
		return finding{"read-only", "Attach the volume writable, if the handler writes to it."}
	case err != nil:
		return finding{"not writable: " + cause(err), "Let the user of this program write to it."}
	case took > slowWrite:
		return finding{
			fmt.Sprintf("slow: %d KB took %d ms to write", probeBytes>>10, took.Milliseconds()),
			"Copy models to the container's disk first, or choose a data center whose storage is nearer.",
		}
	}
	return finding{state: "mounted and writable"}
}

// unmounted tells a missing volume from a folder of its name. A /workspace is in many images; a /runpod-volume is there
// for the volume alone.
func (s system) unmounted(ctx context.Context, path string, expected bool) finding {
	_, err := ask(ctx, s.asker, path, func() (fs.FileInfo, error) { return os.Stat(s.box.at(path)) })
	switch {
	case errors.Is(err, errSilent):
		return finding{errSilent.Error(), "See whether the storage behind it can be reached; restart the worker elsewhere."}
	case err != nil && expected:
		return finding{"missing", "Attach the network volume, in its own data center; on a pod it may be mounted elsewhere."}
	case err == nil && (expected || path == serverlessVolume):
		return finding{
			"a folder on the container's disk, not a volume: what is written there ends with the container",
			"Attach the network volume, or remove the folder from the image.",
		}
	}
	return finding{}
}

// expectedVolume is where the volume must be that the platform says there is; empty where it says nothing.
func (s system) expectedVolume() string {
	get := func(name string) string {
		v, _ := s.lookup(name)
		return v
	}
	switch {
	case get(config.VolumeID) == "":
		return ""
	case get(config.EndpointID) != "":
		return serverlessVolume
	}
	return podVolume
}

// writeProbe creates a file in a folder, and gets that many bytes of it onto the disk. The file has no name by then, so
// that nothing stays behind, whatever happens.
func writeProbe(dir string, bytes int) error {
	f, err := os.CreateTemp(dir, ".runpodctl-worker-*")
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := os.Remove(f.Name()); err != nil || bytes == 0 {
		return err
	}
	text := make([]byte, bytes)
	_, _ = rand.Read(text) // it never fails; zeros might not be written at all
	if _, err := f.Write(text); err != nil {
		return err
	}
	return f.Sync()
}

// cause is an error without the path that the sentence around it names.
func cause(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err.Error()
	}
	return err.Error()
}
