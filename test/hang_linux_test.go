package test

import (
	wire "encoding/binary"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// mountHanging mounts a file system that answers nobody, where one may be mounted. asked is closed when somebody waits for it.
func mountHanging(t *testing.T, at string) (asked <-chan struct{}) {
	t.Helper()
	device, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Close(device)) })
	if err := unix.Mount("hanging", at, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", device)); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	waiting := make(chan struct{})
	t.Cleanup(func() {
		require.NoError(t, unix.Unmount(at, unix.MNT_FORCE|unix.MNT_DETACH))
		<-waiting
	})
	request := make([]byte, 1<<20)
	_, err = unix.Read(device, request)
	require.NoError(t, err)
	_, err = unix.Write(device, introduction(request))
	require.NoError(t, err)
	go func() {
		defer close(waiting)
		for interrupted := true; interrupted; { // nothing is read: that would hold up even the end of whoever has asked
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(device), Events: unix.POLLIN}}, -1)
			interrupted = errors.Is(err, unix.EINTR)
		}
	}()
	return waiting
}

// introduction answers the kernel's first request, of which the others are sent only then.
func introduction(request []byte) []byte {
	const (
		header, body = 16, 24
		major, minor = 7, 22 // whose answer has no more fields than these two, and four that may be 0
	)
	answer := make([]byte, header+body)
	wire.NativeEndian.PutUint32(answer, header+body)
	copy(answer[8:header], request[8:header]) // what it is the answer to
	wire.NativeEndian.PutUint32(answer[header:], major)
	wire.NativeEndian.PutUint32(answer[header+4:], minor)
	return answer
}

// VC-06: a worker does not wait for a volume that does not answer: neither at its start, nor when it is told to stop, nor at its end.
func TestRunWithAVolumeThatHangs(t *testing.T) {
	t.Parallel()
	t.Run("until the time is over", func(t *testing.T) {
		t.Parallel()
		s := newStore(t)
		s.fresh()
		mountHanging(t, s.volume)
		w := s.worker(nil, "--cache-timeout", "1s")
		require.Empty(t, s.ask(w, "j1", `{"learn":"style"}`).Found)
		s.stop(w)
		require.Equal(t, 1, strings.Count(w.stderr.String(), "VolumeCache"), w.stderr)
		require.Contains(t, w.stderr.String(), "it was not done after 1s")
	})
	t.Run("until a signal", func(t *testing.T) {
		t.Parallel()
		s := newStore(t)
		s.fresh()
		asked := mountHanging(t, s.volume)
		w := s.worker(nil)
		<-asked
		s.stop(w)
		require.NotContains(t, w.stderr.String(), "Ready for jobs")
		require.NotContains(t, w.stderr.String(), "VolumeCache")
	})
	t.Run("at the end", func(t *testing.T) {
		t.Parallel()
		s := newStore(t)
		s.fresh()
		w := s.worker(nil)
		w.logs(t, "VolumeCache: synced")
		asked := mountHanging(t, s.volume)
		s.ask(w, "j1", `{"learn":"style"}`)
		w.signal(t, syscall.SIGTERM)
		<-asked
		require.Zero(t, w.wait(t), w.stderr)
		require.Contains(t, w.stderr.String(), "the last sync was cut short; the mirror stays as it was")
	})
	t.Run("by hand", func(t *testing.T) {
		t.Parallel()
		s := newStore(t)
		s.fresh()
		mountHanging(t, s.volume)
		for _, action := range []string{"hydrate", "sync", "status"} {
			p := runToEnd(t, command{args: []string{binary(t), "cache", action, "--volume", s.volume, "--namespace", "ep", "--timeout", "1s", s.models}})
			require.Equal(t, 1, p.cmd.ProcessState.ExitCode(), p.stderr)
			require.Contains(t, p.stderr.String(), action+": not done after 1s (--timeout)")
		}
	})
}
