package cli

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/proc"
)

// lastWait is how long an orderly end may take once all programs have been killed.
const lastWait = time.Second

// untilSignal is a context that ends with the first signal. The second one kills all programs, so that none is left
// when this process ends, which it does soon after, whatever hangs, or with the third one.
func (s *session) untilSignal() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		var late <-chan time.Time
		for n := 1; ; n++ {
			select {
			case <-over:
				return
			case <-late:
				s.Exit(exitInterrupted)
			case <-s.Signals:
			}
			switch n {
			case 1:
				cancel()
			case 2:
				proc.KillAll()
				late = time.After(lastWait)
			default:
				s.Exit(exitInterrupted)
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
