package program

import "strings"

// launcher runs handler.py:func. It has no file of its own, so that the handler's file can be the
// __main__ of the process.
const launcher = "from runpod._worker.launch import launch; launch()"

// Command is the command line for a handler file: handler.py, or handler.py:func where the file does
// not call start(). An empty python is python3.
func Command(spec, python string, args ...string) []string {
	if python == "" {
		python = "python3"
	}
	file, function := spec, ""
	if i := strings.LastIndexByte(spec, ':'); i > 0 && strings.HasSuffix(spec[:i], ".py") {
		file, function = spec[:i], spec[i+1:]
	}
	if function == "" {
		return append([]string{python, "-u", file}, args...)
	}
	return append([]string{python, "-u", "-c", launcher, file, function}, args...)
}
