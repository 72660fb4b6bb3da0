package tui

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is the program of the terminal tests too: they run this binary again, in a terminal of its own.
func TestMain(m *testing.M) {
	if name, ok := os.LookupEnv(programEnv); ok {
		os.Exit(program(name))
	}
	goleak.VerifyTestMain(m)
}
