package cli

import (
	"log/slog"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// stuck is a log that nobody reads.
type stuck chan struct{}

func (s stuck) Write(p []byte) (int, error) { <-s; return len(p), nil }

func TestWatchSignals(t *testing.T) {
	for name, log := range map[string]func() (slog.Handler, func()){
		"a log": func() (slog.Handler, func()) { return slog.DiscardHandler, func() {} },
		"a log that nobody reads": func() (slog.Handler, func()) {
			s := make(stuck)
			return slog.NewTextHandler(s, nil), func() { close(s) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			handler, release := log()
			signals, exit := make(chan os.Signal), make(chan int, 1)
			life, stop := watchSignals(Process{Signals: signals, Exit: func(code int) { exit <- code }}, slog.New(handler), "it ends")
			require.NoError(t, life.fetch.Err())

			signals <- syscall.SIGUSR1
			<-life.fetch.Done()
			signals <- syscall.SIGUSR1
			signals <- syscall.SIGTERM
			require.NoError(t, life.work.Err(), "the first signal leaves the work alone")
			signals <- syscall.SIGUSR1
			signals <- syscall.SIGUSR1 // is received when the one before has been seen to
			require.NoError(t, life.work.Err(), "so does one that only drains")
			signals <- syscall.SIGTERM
			<-life.work.Done()
			signals <- syscall.SIGINT
			require.Equal(t, exitUnsettled, <-exit)
			release()
			stop()
		})
	}
}
