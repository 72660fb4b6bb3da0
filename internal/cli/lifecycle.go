package cli

import (
	"context"
	"log/slog"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"runpodctl-worker/internal/mistake"
	"runpodctl-worker/internal/proc"
)

// drainSignal is for whoever wants the jobs finished and nothing else: however often it comes, it never cuts them short.
const drainSignal = syscall.SIGUSR1

const (
	// tellTime is how long a line about a signal may take.
	tellTime = 200 * time.Millisecond
	// echoTime is how soon after the first a signal is an echo of it: timeout, npm and others send theirs to the process
	// and to its group, and a terminal's Ctrl-C reaches both as well.
	echoTime = 20 * time.Millisecond
	// lastWait is how long an orderly end may take once all programs have been killed.
	lastWait = time.Second
)

// lifecycle is the life of a command between signals: the first one ends the taking of work, the second
// one the work itself, the third the process, whatever hangs. A drainSignal does what the first one does, and counts for none.
type lifecycle struct {
	fetch context.Context // ended by the first signal: take no more work
	work  context.Context // ended by the second: let go of the work at hand
}

// watchSignals starts the lifecycle. first is what the first signal means to the command. stop ends it all and
// frees its goroutine.
func watchSignals(p Process, log *slog.Logger, first string) (l lifecycle, stop func()) {
	fetch, endFetch := context.WithCancel(context.Background())
	work, endWork := context.WithCancel(context.Background())
	over := make(chan struct{})
	done := make(chan struct{})
	drain := func(sig os.Signal) {
		endFetch()
		tell(log.Info, "stopping: "+signalName(sig)+" received; "+first)
	}
	go func() {
		defer close(done)
		var began time.Time
		for n := 0; ; {
			select {
			case <-over:
				return
			case sig := <-p.Signals:
				if sig == drainSignal {
					drain(sig)
					continue
				}
				if n == 1 && time.Since(began) < echoTime {
					continue
				}
				switch n++; n {
				case 1:
					drain(sig)
					began = time.Now() // an echo has waited meanwhile
				case 2:
					endWork()
					tell(log.Warn, "stopping now: "+signalName(sig)+" received again")
				default:
					p.Exit(exitUnsettled)
				}
			}
		}
	}()
	return lifecycle{fetch, work}, func() {
		close(over)
		<-done
		endFetch()
		endWork()
	}
}

// signalName is what people call a signal: the text of the system is "terminated", also for one that is only asked to stop.
func signalName(sig os.Signal) string {
	if number, ok := sig.(syscall.Signal); ok {
		if name := unix.SignalName(number); name != "" {
			return name
		}
	}
	return sig.String()
}

// tell logs without waiting: a log that nobody reads any more must not make the program deaf to the next signal.
func tell(log func(string, ...any), message string) {
	said := make(chan struct{})
	go func() {
		defer close(said)
		_ = mistake.Catch(func() { log(message) }) // there is nowhere else to say it
	}()
	select {
	case <-said:
	case <-time.After(tellTime):
	}
}

// ended tells whether a context has.
func ended(ctx context.Context) bool { return ctx.Err() != nil }

// branch is a lifecycle that can also be drained from within.
func (l lifecycle) branch() (lifecycle, context.CancelFunc) {
	fetch, end := context.WithCancel(l.fetch)
	return lifecycle{fetch, l.work}, end
}

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
