package volume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	lockName  = "sync.lock"
	lockPause = 250 * time.Millisecond
	maxOwner  = 4096 // bytes of a lock
	renewals  = 4    // in the time after which a lock is stale
)

// owner says who holds the lock. A process can be looked for only where its number means the same: in its own space of numbers, on its own boot.
type owner struct {
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	Boot  string `json:"boot"`
	Space string `json:"pid_namespace"`
	ID    string `json:"id"`
}

func thisProcess() owner {
	host, _ := os.Hostname()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, _ := os.Readlink("/proc/self/ns/pid")
	return owner{Host: host, PID: os.Getpid(), Boot: strings.TrimSpace(string(boot)), Space: space, ID: randomName()}
}

// dead tells whether the owner certainly lives no more.
func (o owner) dead(self owner) bool {
	return o.PID > 0 && o.Boot != "" && o.Space != "" && o.Boot == self.Boot && o.Space == self.Space && o.Host == self.Host &&
		errors.Is(unix.Kill(o.PID, 0), unix.ESRCH)
}

// lock keeps other writers of this program away. The Python class knows nothing of it, so no step of a sync relies on it:
// without it the last manifest wins, and files of other writers may be missing until the next sync.
type lock struct {
	root *os.Root
	file *os.File
	self owner
	stop context.CancelFunc
	done chan struct{}
}

// takeLock waits for the lock. One whose owner is dead, or has not renewed it for long, is taken over; while it is renewed somebody
// works, and after a while this is ErrBusy.
func takeLock(ctx context.Context, p *pulse, root *os.Root, limits limits) (*lock, error) {
	self := thisProcess()
	for began := time.Now(); ; {
		l, err := createLock(root, self, limits)
		switch {
		case err == nil:
			return l, nil
		case !errors.Is(err, fs.ErrExist):
			return nil, fmt.Errorf("%s cannot be written to: %w", root.Name(), cause(err))
		}
		o, age, err := lookAtLock(root)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, errIrregular) && root.Remove(lockName) == nil: // nobody can hold it
			continue
		case err != nil:
			return nil, fmt.Errorf("the lock of the mirror, %s: %w", filepath.Join(root.Name(), lockName), err)
		case o.dead(self) || age.Abs() > limits.stale: // a time to come is of a clock that was wrong
			if err := breakLock(root, o); err != nil {
				return nil, err
			}
			continue
		case time.Since(began) > limits.wait:
			return nil, fmt.Errorf("%w: process %d on %s", ErrBusy, o.PID, o.Host)
		}
		p.beat() // to wait is not to hang
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lockPause):
		}
	}
}

// lock takes the lock, and reads the manifest anew: another writer may have been at work.
func (m *mirror) lock(ctx context.Context, p *pulse, c *Cache) (*lock, error) {
	l, err := takeLock(ctx, p, m.root, c.limits)
	if err != nil {
		return nil, err
	}
	if err := m.reread(c); err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

func createLock(root *os.Root, self owner, limits limits) (*lock, error) {
	file, err := root.OpenFile(lockName, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &lock{root: root, file: file, self: self, stop: stop, done: make(chan struct{})}
	err = l.renew()
	go func() {
		defer close(l.done)
		l.keep(ctx, limits.stale/renewals)
	}()
	if err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

// renew writes the lock once more, which gives it the volume's own time.
func (l *lock) renew() error {
	text, err := json.Marshal(l.self)
	if err == nil {
		_, err = l.file.WriteAt(text, 0)
	}
	return err
}

func (l *lock) keep(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = l.renew() // it is lost if this goes on failing, and held tells
		}
	}
}

// held returns an error if somebody else has taken the lock over.
func (l *lock) held() error {
	o, _, err := readLock(l.root)
	if err == nil && o.ID != l.self.ID {
		err = fmt.Errorf("%w: process %d on %s has taken over", ErrBusy, o.PID, o.Host)
	}
	return err
}

func (l *lock) release() {
	l.stop()
	<-l.done
	if l.held() == nil {
		_ = l.root.Remove(lockName)
	}
	_ = l.file.Close()
}

// lookAtLock tells who holds the lock, and when it was last renewed by the clock of the volume.
func lookAtLock(root *os.Root) (owner, time.Duration, error) {
	o, renewed, err := readLock(root)
	if err != nil {
		return o, 0, err
	}
	return o, clock(root).Sub(renewed), nil
}

func readLock(root *os.Root) (owner, time.Time, error) {
	if info, err := root.Lstat(lockName); err == nil && !info.Mode().IsRegular() {
		return owner{}, time.Time{}, irregular(info)
	}
	file, info, err := openRegular(root, lockName)
	if err != nil {
		return owner{}, time.Time{}, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxOwner))
	if err != nil {
		return owner{}, time.Time{}, err
	}
	var o owner
	_ = json.Unmarshal(text, &o) // an owner who died before it had written its name has none
	return o, info.ModTime(), nil
}

// breakLock removes the lock of an owner, unless another one has it by now.
func breakLock(root *os.Root, stale owner) error {
	o, _, err := readLock(root)
	if err == nil && o.ID == stale.ID {
		err = root.Remove(lockName)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// clock is the time of the volume, which may be another than that of this machine. Where nothing can be written it is ours.
func clock(root *os.Root) time.Time {
	t, err := newTemp(root, lockName, 0o600)
	if err != nil {
		return time.Now()
	}
	defer t.drop()
	info, err := t.file.Stat()
	if err != nil {
		return time.Now()
	}
	return info.ModTime()
}
