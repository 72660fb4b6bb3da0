package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/handler/program"
)

// handlerSpec says what runs the jobs: the built-in echo, a Python file or any command.
type handlerSpec struct {
	echo    bool
	file    string   // a Python file …
	fn      string   // … and, where the file has no start() of its own, the function in it
	command []string // the image's own command, as it stands after --
}

func (s handlerSpec) String() string {
	switch {
	case s.echo:
		return "echo"
	case s.fn != "":
		return s.file + ":" + s.fn
	case s.file != "":
		return s.file
	default:
		return strings.Join(s.command, " ")
	}
}

// args is the command that starts the program, with an interpreter for a file.
func (s handlerSpec) args(python string) []string {
	if s.file != "" {
		return program.Command(s.String(), python)
	}
	return s.command
}

// errNoHandler is for commands that must not guess: a wrong folder is not a green test.
var errNoHandler = usagef("no handler found: give --handler handler.py, or a command after --, " +
	"or set " + config.Handler + ", or change to a folder with a handler.py that calls runpod.serverless.start(…)")

// conventional is where handlers live in the repositories that the Hub knows.
var conventional = []string{"handler.py", "src/handler.py", "rp_handler.py", "src/rp_handler.py"}

// findHandler resolves --handler, the command after --, the environment and the conventional places, in
// that order. It returns errNoHandler where there is none.
func findHandler(flag string, command []string, lookup config.Lookup) (handlerSpec, error) {
	switch {
	case flag != "" && len(command) > 0:
		return handlerSpec{}, usagef("give either --handler or a command after --, not both")
	case len(command) > 0:
		return handlerSpec{command: command}, nil
	case flag != "":
		return parseSpec("--handler", flag)
	}
	if spec, ok := lookup(config.Handler); ok && spec != "" {
		return parseSpec(config.Handler, spec)
	}
	for _, path := range conventional {
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte("start(")) {
			return handlerSpec{file: path}, nil
		}
	}
	return handlerSpec{}, errNoHandler
}

// parseSpec reads `echo`, `file.py` and `file.py:function`. source is named in errors.
func parseSpec(source, spec string) (handlerSpec, error) {
	if spec == "echo" {
		return handlerSpec{echo: true}, nil
	}
	file, fn := spec, ""
	if i := strings.LastIndex(spec, ".py:"); i >= 0 {
		file, fn = spec[:i+len(".py")], spec[i+len(".py:"):]
		if fn == "" {
			return handlerSpec{}, usagef("%s %s: name the function after the colon", source, spec)
		}
	}
	if !strings.HasSuffix(file, ".py") {
		return handlerSpec{}, usagef("%s %s: want handler.py, handler.py:function or echo; any other program goes after --", source, spec)
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return handlerSpec{}, usagef("%s %s: no such file", source, file)
	case err != nil:
		return handlerSpec{}, usagef("%s: %w", source, bare(err))
	case info.IsDir():
		return handlerSpec{}, usagef("%s %s: is a folder", source, file)
	}
	return handlerSpec{file: file, fn: fn}, nil
}
