package volume

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// putLock leaves the lock of another writer, last renewed some time ago.
func (r *rig) putLock(o owner, ago time.Duration) {
	r.t.Helper()
	text, err := json.Marshal(o)
	require.NoError(r.t, err)
	require.NoError(r.t, os.WriteFile(r.mirror(lockName), text, 0o644))
	age(r.t, r.mirror(lockName), ago)
}

// VC-05: the lock says whose it is, and is taken over from the dead.
func TestLock(t *testing.T) {
	self := thisProcess()
	elsewhere := owner{Host: "elsewhere", PID: 7, Boot: "b", Space: "s", ID: "1"}
	ended := self
	ended.ID, ended.PID = "2", endedProcess(t)
	alive := self
	alive.ID, alive.PID = "3", os.Getppid()
	tests := []struct {
		name  string
		owner owner
		ago   time.Duration
		busy  bool
	}{
		{"renewed a moment ago", elsewhere, 0, true},
		{"not renewed for long", elsewhere, lockStale + time.Second, false},
		{"nearly too long", elsewhere, lockStale - time.Minute, true},
		{"by a clock that is ahead", elsewhere, -time.Minute, true},
		{"by a clock that was wrong", elsewhere, -time.Hour, false},
		{"of a process of this machine that has ended", ended, 0, false},
		{"of a process of this machine", alive, 0, true},
		{"of nobody", owner{}, 0, true},
		{"of nobody, for long", owner{}, lockStale + time.Second, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.write("a", "a")
			r.sync()
			r.write("a", "b")
			r.putLock(tt.owner, tt.ago)
			c := r.cache()
			c.limits.wait = 0
			report, err := c.Sync(t.Context())
			if tt.busy {
				require.ErrorIs(t, err, ErrBusy)
				require.FileExists(t, r.mirror(lockName))
				status, err := c.Status(t.Context())
				require.NoError(t, err)
				require.Equal(t, tt.owner.PID, status.Writer.PID)
				return
			}
			require.NoError(t, err)
			require.Equal(t, 1, report.Files)
			require.NoFileExists(t, r.mirror(lockName))
		})
	}
}

func endedProcess(t *testing.T) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	require.NoError(t, cmd.Run())
	return cmd.Process.Pid
}

func TestLock_IsRenewedAndNoticedWhenLost(t *testing.T) {
	r := newRig(t)
	r.write("a", "a")
	r.sync()
	root, err := os.OpenRoot(r.mirror())
	require.NoError(t, err)
	defer root.Close()
	short := limits{stale: 40 * time.Millisecond, wait: time.Minute}
	l, err := takeLock(t.Context(), &pulse{}, root, short)
	require.NoError(t, err)
	defer l.release()
	age(t, r.mirror(lockName), time.Hour)
	require.Eventually(t, func() bool {
		_, age, err := lookAtLock(root)
		return err == nil && age < time.Minute
	}, time.Minute, time.Millisecond)
	require.NoError(t, l.held())
	require.NoError(t, os.Remove(r.mirror(lockName)))
	r.putLock(owner{Host: "elsewhere", ID: "4"}, 0)
	require.ErrorIs(t, l.held(), ErrBusy)
}

func TestLock_WaitsForItsTurn(t *testing.T) {
	r := newRig(t)
	r.write("a", "a")
	r.sync()
	r.write("a", "b")
	r.putLock(owner{Host: "elsewhere", PID: 7, ID: "5"}, 0)
	done := make(chan error, 1)
	go func() {
		_, err := r.cache().Sync(t.Context())
		done <- err
	}()
	require.NoError(t, os.Remove(r.mirror(lockName)))
	require.NoError(t, <-done)

	ctx, cancel := context.WithCancel(t.Context())
	r.write("a", "c")
	r.putLock(owner{Host: "elsewhere", PID: 7, ID: "6"}, 0)
	go func() {
		_, err := r.cache().Sync(ctx)
		done <- err
	}()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

// VC-05: locks of a dead worker are not copied, and hold nobody up.
func TestLock_FilesOfOthers(t *testing.T) {
	r := newRig(t)
	r.write("hub/.locks/models--x/b.lock", "")
	r.write("hub/blobs/b", "blob")
	require.NoError(t, os.MkdirAll(r.mirror(), 0o755))
	require.NoError(t, os.WriteFile(r.mirror("manifest.lock"), nil, 0o644))
	require.Equal(t, 1, r.sync().Files)
	r.fresh()
	r.hydrate()
	require.Equal(t, map[string]string{"hub/blobs/b": "4 " + sumOf("blob")}, contents(t, r.dir()))
}

// untilKilled lets a child sync until it has done so many, and kills it somewhere in the next.
func untilKilled(t *testing.T, cmd *exec.Cmd, out *bufio.Scanner, syncs int, after time.Duration) {
	t.Helper()
	for ; syncs >= 0 && out.Scan(); syncs-- {
		require.Equal(t, "begin", out.Text())
	}
	<-time.After(after)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait(), "it was killed")
}

// A sync that is killed at any moment leaves a mirror that both sides can hydrate from: each file has one of the contents
// that it had, whole.
func TestKilled(t *testing.T) {
	r := newRig(t)
	for i := range 40 {
		r.write(fmt.Sprint("small/", i), strings.Repeat("-", 5000))
	}
	for i := range 4 {
		r.write(fmt.Sprint("large/", i), strings.Repeat("-", 8<<20))
	}
	want := len(image(t, r.dir()))
	r.sync()
	for round := range 10 {
		cmd, out := startChild(t, childJob{Volume: r.volume, Dirs: []string{r.dir()}})
		untilKilled(t, cmd, out, round%2, time.Duration(round)*3*time.Millisecond)
		r.fresh()
		report := r.hydrate()
		requireWhole(t, r.dir())
		require.Equal(t, want, report.Files+report.SkippedTotal)
		found, err := r.cache().Verify(t.Context(), false)
		require.NoError(t, err)
		require.Equal(t, report.SkippedTotal, found.ProblemsTotal)
		r.fresh()
		r.python("hydrate")
		requireWhole(t, r.dir())
		r.fresh()
		refill(t, r)
		r.sync()
	}
	c := r.cache()
	c.limits.temps = 0
	r.write("another", "change")
	_, err := c.Sync(t.Context())
	require.NoError(t, err)
	requireNoTemps(t, r.mirror())
}

func refill(t *testing.T, r *rig) {
	t.Helper()
	for i := range 40 {
		r.write(fmt.Sprint("small/", i), strings.Repeat("-", 5000))
	}
	for i := range 4 {
		r.write(fmt.Sprint("large/", i), strings.Repeat("-", 8<<20))
	}
}

// requireWhole looks whether each file holds nothing but one letter, as many times as it should.
func requireWhole(t *testing.T, dir string) {
	t.Helper()
	for name := range image(t, dir) {
		size := 5000
		if strings.HasPrefix(name, "large") {
			size = 8 << 20
		}
		content := read(t, filepath.Join(dir, name))
		require.Len(t, content, size, name)
		require.Equal(t, size, strings.Count(content, content[:1]), "%s is torn", name)
	}
}

func requireNoTemps(t *testing.T, dir string) {
	t.Helper()
	for name := range image(t, dir) {
		require.NotContains(t, name, tempEnd)
		require.NotEqual(t, lockName, name)
	}
}

// VC-03: six processes sync to one mirror, each with contents of its own; two are killed. A seventh finds a mirror that is whole.
func TestManyWriters(t *testing.T) {
	r := newRig(t)
	var dirs []string
	type writer struct {
		cmd *exec.Cmd
		out *bufio.Scanner
	}
	var writers []writer
	for i := range 6 {
		dir := filepath.Join(r.dir(), fmt.Sprint("worker-", i))
		dirs = append(dirs, dir)
		for file, size := range map[string]int{"small/1": 5000, "small/2": 5000, "large/1": 8 << 20, "large/2": 8 << 20} {
			r.write(fmt.Sprint("worker-", i, "/", file), strings.Repeat("-", size))
		}
		cmd, out := startChild(t, childJob{Volume: r.volume, Dirs: []string{dir}, Once: i >= 2})
		writers = append(writers, writer{cmd, out})
	}
	for i, w := range writers {
		if i < 2 {
			untilKilled(t, w.cmd, w.out, 0, time.Duration(i)*10*time.Millisecond)
			continue
		}
		for w.out.Scan() {
			continue
		}
		require.NoError(t, w.cmd.Wait())
	}
	seventh := r.cache(func(o *Options) { o.Dirs = dirs })
	r.fresh()
	report, err := seventh.Hydrate(t.Context())
	require.NoError(t, err)
	require.Empty(t, report.Skipped)
	require.Equal(t, 4, report.Files, "the last manifest has the files of one")
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "small")); err == nil {
			requireWhole(t, dir)
		}
	}
	found, err := seventh.Verify(t.Context(), false)
	require.NoError(t, err)
	require.Empty(t, found.Problems)

	seventh.limits.temps = 0
	r.write("worker-6/x", "x")
	seventh.dirs = append(seventh.dirs, filepath.Join(r.dir(), "worker-6"))
	_, err = seventh.Sync(t.Context())
	require.NoError(t, err)
	requireNoTemps(t, r.mirror())
}
