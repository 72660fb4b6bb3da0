// Package quiet keeps the terminal libraries from asking the terminal for its colours while the program starts.
//
// bubbletea does that in its package initialisation, whatever the program is about to do: it writes a query, waits up
// to five seconds for an answer, and eats what was typed meanwhile. It asks nobody where CI is set. So CI is set while
// the packages initialise, and put back by the first package that stands above bubbletea.
//
// The order is the language's: packages initialise sorted by import path, each as soon as all that it imports is
// ready. This one needs syscall alone and sorts before strings and unicode, on which every terminal library depends.
// It must not import anything else.
package quiet

import "syscall"

const name = "CI"

var before, was = syscall.Getenv(name)

func init() {
	if before == "" {
		_ = syscall.Setenv(name, "1") // a name without '=' and NUL is always accepted
	}
}

// Restore puts the environment back as it was.
func Restore() {
	switch {
	case !was:
		_ = syscall.Unsetenv(name)
	case before == "":
		_ = syscall.Setenv(name, "")
	}
}
