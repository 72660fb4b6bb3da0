package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// What is mirrored: the many small files of a model's code and tokenizers, and its weights.
const (
	smallFiles = 2000
	smallMin   = 4 << 10
	smallMax   = 100 << 10
	bigFiles   = 8
	bigSize    = 64 << 20
)

// volume compares the commands of the cache with the Python class. Both say themselves how long it took: a worker that hydrates has
// long been started, and so has a handler. Both find everything in the page cache, and nobody waits for the disk.
func (b *bench) volume() ([]comparison, error) {
	v, err := b.newMirrors()
	if err != nil {
		return nil, err
	}
	defer v.close()
	line := func(what string, ratio float64) comparison {
		return comparison{what: "volume cache, " + what, unit: "s", rival: "Python class", bound: atMost(ratio)}
	}
	all := fmt.Sprintf("%d small and %d large files", smallFiles, bigFiles)
	sync, syncNothing := line("sync of "+all, 1), line("sync, nothing changed", 1.0/3)
	hydrate, hydrateNothing := line("hydrate of "+all, 1.0/2), line("hydrate, nothing changed", 1.0/3)
	big := comparison{what: fmt.Sprintf("volume cache, sync of %d large files", bigFiles), unit: "s", rival: "cp", bound: atMost(1 / 0.8)}
	for range b.reps + 2 {
		for _, side := range []struct {
			do                                              func(action, dir string) (float64, error)
			sync, syncNothing, hydrate, hydrateNothing, big *samples
		}{
			{v.ours, &sync.ours, &syncNothing.ours, &hydrate.ours, &hydrateNothing.ours, &big.ours},
			{v.class, &sync.theirs, &syncNothing.theirs, &hydrate.theirs, &hydrateNothing.theirs, nil},
		} {
			err := v.measure(side.do, v.data, side.sync, side.syncNothing, side.hydrate, side.hydrateNothing)
			if err == nil && side.big != nil {
				err = v.measure(side.do, filepath.Join(v.data, "big"), side.big)
			}
			if err != nil {
				return nil, err
			}
		}
		took, err := v.copy()
		if err != nil {
			return nil, err
		}
		big.theirs = append(big.theirs, took)
	}
	return []comparison{sync, syncNothing, hydrate, hydrateNothing, big}, nil
}

// mirrors is what the section works with.
type mirrors struct {
	bin    string
	data   string // the files
	volume string
	python *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
}

func (b *bench) newMirrors() (*mirrors, error) {
	dir, err := os.MkdirTemp(b.dir, "volume-")
	if err != nil {
		return nil, err
	}
	v := &mirrors{bin: b.bin, data: filepath.Join(dir, "data"), volume: filepath.Join(dir, "volume")}
	if err := v.fill(); err != nil {
		return nil, err
	}
	v.python = exec.Command(b.python, "internal/volume/testdata/volumecache.py")
	v.python.Env = append(os.Environ(), "RUNPOD_DEBUG_LEVEL=WARN")
	if v.in, err = v.python.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := v.python.StdoutPipe()
	if err != nil {
		return nil, err
	}
	v.out = bufio.NewScanner(out)
	if err := v.python.Start(); err != nil {
		return nil, err
	}
	if !v.out.Scan() {
		return nil, fmt.Errorf("the Python class does not start: %w", v.python.Wait())
	}
	return v, nil
}

func (v *mirrors) close() {
	_ = v.in.Close()
	_ = v.python.Wait() // it ends with its input
}

// fill writes files of random bytes.
func (v *mirrors) fill() error {
	random := rand.NewChaCha8([32]byte{})
	write := func(path string, size int) error {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		data := make([]byte, size)
		_, _ = random.Read(data) // never fails
		return os.WriteFile(path, data, 0o644)
	}
	for i := range smallFiles {
		path := filepath.Join(v.data, "small", fmt.Sprint(i%40), fmt.Sprint("file-", i))
		if err := write(path, smallMin+int(random.Uint64()%(smallMax-smallMin))); err != nil {
			return err
		}
	}
	for i := range bigFiles {
		if err := write(filepath.Join(v.data, "big", fmt.Sprint("weights-", i)), bigSize); err != nil {
			return err
		}
	}
	return os.MkdirAll(v.volume, 0o755)
}

// measure syncs to an empty volume, once more, hydrates an empty folder, and once more, as far as anybody wants to know.
func (v *mirrors) measure(do func(action, dir string) (float64, error), dir string, into ...*samples) error {
	kept := dir + ".kept"
	if err := v.empty(); err != nil {
		return err
	}
	for i, to := range into {
		if i == 2 { // what was synced is put aside, to be compared
			if err := os.Rename(dir, kept); err != nil {
				return err
			}
			syscall.Sync()
		}
		took, err := do([]string{"sync", "sync", "hydrate", "hydrate"}[i], dir)
		if err != nil {
			return err
		}
		*to = append(*to, took)
	}
	if len(into) <= 2 {
		return nil
	}
	if out, err := exec.Command("diff", "-r", kept, dir).CombinedOutput(); err != nil {
		return fmt.Errorf("not what was synced: %w: %.1000s", err, out)
	}
	if err := v.putAside(dir); err != nil {
		return err
	}
	return os.Rename(kept, dir)
}

// putAside empties files instead of removing them: a file system that looks for a place among those that were just removed would measure
// that, and a new container has removed none.
func (v *mirrors) putAside(dir string) error {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return os.Truncate(path, 0)
	})
	if err != nil {
		return err
	}
	aside, err := os.MkdirTemp(filepath.Dir(v.data), "aside-")
	if err != nil {
		return err
	}
	return os.Rename(dir, filepath.Join(aside, filepath.Base(dir)))
}

// empty empties the volume, and has the disk do what it still has to do.
func (v *mirrors) empty() error {
	if err := os.RemoveAll(v.volume); err != nil {
		return err
	}
	syscall.Sync()
	return os.Mkdir(v.volume, 0o755)
}

func (v *mirrors) ours(action, dir string) (float64, error) {
	out, err := exec.Command(v.bin, "cache", action, "--volume", v.volume, "--namespace", "bench", "--json", dir).Output()
	if err != nil {
		return 0, fmt.Errorf("cache %s: %w: %.1000s", action, err, out)
	}
	var answer struct{ Report struct{ Seconds float64 } }
	err = json.Unmarshal(out, &answer)
	return answer.Report.Seconds, err
}

func (v *mirrors) class(action, dir string) (float64, error) {
	request, err := json.Marshal(map[string]any{"do": action, "dirs": []string{dir}, "namespace": "bench", "volume": v.volume})
	if err != nil {
		return 0, err
	}
	if _, err := v.in.Write(append(request, '\n')); err != nil {
		return 0, err
	}
	if !v.out.Scan() {
		return 0, fmt.Errorf("the Python class has died: %w", v.out.Err())
	}
	var answer struct{ Seconds float64 }
	err = json.Unmarshal(v.out.Bytes(), &answer)
	return answer.Seconds, err
}

// copy is what the disk can do: cp of the large files.
func (v *mirrors) copy() (float64, error) {
	if err := v.empty(); err != nil {
		return 0, err
	}
	began := time.Now()
	out, err := exec.Command("cp", "-r", filepath.Join(v.data, "big"), v.volume).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("cp: %w: %s", err, out)
	}
	return time.Since(began).Seconds(), nil
}
