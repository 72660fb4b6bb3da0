package gpu

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"runpodctl-worker/internal/checks/gpu/embedded"
	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/internal/config"
)

// Helper is one of the two helper programs.
type Helper string

// The helper programs. Nothing else loads a driver library.
const (
	CUDAHelper Helper = "cuda"
	NVMLHelper Helper = "nvml"
)

func (h Helper) file() string { return "runpodctl-worker-" + string(h) + "-probe" }

// Program is a helper that can be started. Close it once it runs.
type Program struct {
	Path  string
	image *os.File // the program itself, where it has no name in the file system
	trash string   // a file to remove afterwards
}

// Close lets go of what only the start needed.
func (p Program) Close() {
	if p.image != nil {
		_ = p.image.Close() // nothing was written through it any more
	}
	if p.trash != "" {
		_ = os.Remove(p.trash) // in the temporary folder
	}
}

// Locator finds a helper program; the error is fs.ErrNotExist where there is none.
type Locator func(Helper) (Program, error)

// Locate looks for a helper in the folder that RUNPODCTL_WORKER_PROBES names, beside this executable, and inside it.
func Locate(lookup config.Lookup) Locator {
	return func(h Helper) (Program, error) {
		if dir, _ := lookup(config.Probes); dir != "" {
			path := filepath.Join(dir, h.file())
			if _, err := os.Stat(path); err != nil {
				return Program{}, fmt.Errorf("%s: %w", config.Probes, err)
			}
			return Program{Path: path}, nil
		}
		if exe, err := os.Executable(); err == nil {
			path := filepath.Join(filepath.Dir(exe), h.file())
			if _, err := os.Stat(path); err == nil {
				return Program{Path: path}, nil
			}
		}
		packed, err := embedded.Open(string(h))
		if err != nil {
			return Program{}, err
		}
		defer packed.Close()
		return unpack(h, packed)
	}
}

// unpack puts a helper into memory, or where that is impossible into a file that nobody else can touch.
func unpack(h Helper, packed io.Reader) (Program, error) {
	// A program that is open for writing cannot be executed, and a fork elsewhere would inherit it for a moment.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	program, err := inMemory(h.file())
	if errors.Is(err, errors.ErrUnsupported) {
		program, err = inFile(h.file())
	}
	if err != nil {
		return Program{}, fmt.Errorf("a place to unpack the %s helper: %w", h, err)
	}
	if err := program.fill(packed); err != nil {
		program.Close()
		return Program{}, fmt.Errorf("unpack the %s helper: %w", h, err)
	}
	return program, nil
}

// fill writes the program. As a file it is closed then: what is open for writing cannot be executed.
func (p *Program) fill(from io.Reader) error {
	if _, err := io.Copy(p.image, from); err != nil {
		return err
	}
	if p.trash == "" {
		return nil
	}
	file := p.image
	p.image = nil
	return file.Close()
}

func inFile(name string) (Program, error) {
	file, err := os.CreateTemp("", name+"-*")
	if err != nil {
		return Program{}, err
	}
	program := Program{Path: file.Name(), image: file, trash: file.Name()}
	if err := file.Chmod(0o700); err != nil {
		program.Close()
		return Program{}, err
	}
	return program, nil
}

// imageFD is where a helper that was unpacked into memory finds itself: behind the descriptor that it reports on. It is
// this number that the kernel resolves when the child executes the path, not ours.
const imageFD = wire.ReportFD + 1

func (p Program) files(report *os.File) []*os.File {
	if p.image == nil {
		return []*os.File{report}
	}
	return []*os.File{report, p.image}
}

var imagePath = "/proc/self/fd/" + strconv.Itoa(imageFD)
