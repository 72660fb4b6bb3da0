package cli

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"runpodctl-worker/internal/checks"
)

// untilSignal is a context that ends with the first signal; the second one ends the process.
func (s *session) untilSignal() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-over:
				return
			case <-s.Signals:
				if n > 0 {
					s.Exit(exitInterrupted)
				}
				cancel()
			}
		}
	}()
	return ctx, func() { cancel(); close(over); <-done }
}

// hostFacts say on which machine a report was made.
func hostFacts() []checks.Fact {
	var facts []checks.Fact
	if name, err := os.Hostname(); err == nil {
		facts = append(facts, checks.Fact{Name: "hostname", Value: name})
	}
	facts = append(facts, checks.Fact{Name: "system", Value: runtime.GOOS + "/" + runtime.GOARCH})
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		facts = append(facts, checks.Fact{Name: "kernel", Value: unix.ByteSliceToString(name.Release[:])})
	}
	return append(facts, checks.Fact{Name: "cpus", Value: runtime.NumCPU(), Text: fmt.Sprintf("%d CPUs", runtime.NumCPU())})
}
