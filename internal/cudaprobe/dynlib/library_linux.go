package dynlib

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ebitengine/purego"
)

// Library is a loaded library. It stays for the life of the process.
type Library struct {
	Path    string // of the file, once a function was bound; before, what was asked for
	located bool
	handle  uintptr
}

// Open loads a library: where the loader finds it, else from the first of the folders that has it. MissingError: there
// is none. Any other error: there is one, and it cannot be loaded.
func Open(name string, folders ...string) (*Library, error) {
	handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err == nil {
		return &Library{Path: name, handle: handle}, nil
	}
	refused := err
	if strings.Contains(err.Error(), name+": cannot open shared object file: No such file") {
		refused = nil
	}
	for _, folder := range folders {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err == nil {
			return &Library{Path: path, handle: handle}, nil
		}
		refused = err
	}
	if refused != nil {
		return nil, fmt.Errorf("%s cannot be loaded: %w", name, refused)
	}
	return nil, MissingError{name, folders}
}

// Bind sets the Go function behind fn to the first of the symbols, "newer|older", that the library has. With a "?" at
// the end it may have none: then fn stays nil.
func (l *Library) Bind(fn any, symbols string) error {
	symbols, optional := strings.CutSuffix(symbols, "?")
	for symbol := range strings.SplitSeq(symbols, "|") {
		address, err := purego.Dlsym(l.handle, symbol)
		if err != nil {
			continue
		}
		purego.RegisterFunc(fn, address)
		l.locate(address)
		return nil
	}
	if optional {
		return nil
	}
	first, _, _ := strings.Cut(symbols, "|")
	return SymbolError{first, l.Path}
}

// locate finds out once which file it is that has a function at the address.
func (l *Library) locate(address uintptr) {
	if l.located {
		return
	}
	l.located = true
	if path := fileAt(address); path != "" {
		l.Path = path
	}
}

// fileAt is the file that is mapped at an address: only this says what the loader's search came to.
func fileAt(address uintptr) string {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return ""
	}
	defer func() { _ = maps.Close() }() // it was only read
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to uintptr
		line := lines.Text()
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n != 2 || address < from || address >= to {
			continue
		}
		if slash := strings.IndexByte(line, '/'); slash >= 0 {
			return line[slash:]
		}
	}
	return ""
}
