// Package volume keeps a mirror of local directories on a network volume, so that what one worker has downloaded is there when
// the next one starts. Hydrate copies from the mirror to the directories, Sync the other way.
//
// The mirror has the format of the official Python class VolumeCache, which reads what is written here and writes what
// is read here. Everything else that lies there may be damaged or made up by somebody: nothing is written outside the
// directories and nothing is read outside the mirror.
package volume

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// Options say what is mirrored where.
type Options struct {
	Volume    string   // where the network volume is mounted
	Namespace string   // the folder of the mirror; one name
	Dirs      []string // what is mirrored; Status, Verify and Prune need none
	Copiers   int      // large files that are copied at a time; 0: as many as suit this machine
	// Progress is told a few times a second how far an operation is, and once more at its end. It is not called by two goroutines at once.
	Progress func(Progress)
	// Log gets what somebody should know and what is no error: level is "info" or "warn". It may be called by several goroutines at once,
	// and more than once with the same text.
	Log func(level, text string)
}

// The longest waits and the ages at which something counts as abandoned.
const (
	stallLimit  = 30 * time.Second // without a byte or a file
	cancelGrace = 2 * time.Second  // for what was told to stop
	lockStale   = 2 * time.Minute  // since a writer last said that it lives
	lockWait    = lockStale + 30*time.Second
	tempAge     = 10 * time.Minute // since something was last written to it
)

const maxCopiers = 16

// Cache mirrors directories. Its methods may be called by several goroutines.
type Cache struct {
	opts   Options
	dirs   []string // absolute, without links, none inside another
	limits limits

	mu   sync.Mutex
	seen map[string]stamp // the files and links after the last Sync or Hydrate
}

// limits can be shorter in tests.
type limits struct {
	stall, grace, stale, wait, temps time.Duration
}

// New checks the options and resolves the directories. It touches no volume.
func New(opts Options) (*Cache, error) {
	if err := checkNamespace(opts.Namespace); err != nil {
		return nil, err
	}
	dirs, err := resolveDirs(opts.Dirs)
	if err != nil {
		return nil, err
	}
	if opts.Volume != "" { // which is nowhere, not here
		if opts.Volume, err = filepath.Abs(opts.Volume); err != nil {
			return nil, err
		}
		if err := apart(dirs, opts.Volume); err != nil {
			return nil, err
		}
	}
	opts.Copiers = cmp.Or(max(opts.Copiers, 0), min(4*runtime.NumCPU(), maxCopiers))
	return &Cache{
		opts: opts, dirs: dirs,
		limits: limits{stall: stallLimit, grace: cancelGrace, stale: lockStale, wait: lockWait, temps: tempAge},
	}, nil
}

// Available tells whether there is a volume: nil, ErrNoVolume, or a *NotMounted, with which all else works.
func (c *Cache) Available() error {
	_, err := guard(context.Background(), c, func(context.Context, *pulse) (struct{}, error) {
		return struct{}{}, mounted(c.opts.Volume)
	})
	return err
}

// Hydrate copies what is missing or out of date from the mirror to the directories. A file that is newer there than in the mirror
// is kept. What cannot be copied is reported as skipped; the error says why it ended early.
func (c *Cache) Hydrate(ctx context.Context) (Report, error) {
	return c.transfer(ctx, func(ctx context.Context, p *pulse) (result, error) { return c.hydrate(ctx, p, c.openToRead) })
}

// Sync copies what has changed from the directories to the mirror. Until its end the mirror is what it was before.
func (c *Cache) Sync(ctx context.Context) (Report, error) { return c.transfer(ctx, c.sync) }

// transfer runs Hydrate or Sync, and remembers what the directories were like then.
func (c *Cache) transfer(ctx context.Context, work func(context.Context, *pulse) (result, error)) (Report, error) {
	began := time.Now()
	r, err := guard(ctx, c, work)
	r.report.Seconds = time.Since(began).Seconds()
	if err == nil {
		c.mu.Lock()
		c.seen = r.seen
		c.mu.Unlock()
	}
	return r.report, err
}

// result is what comes of a transfer.
type result struct {
	report Report
	seen   map[string]stamp
}

// Changed tells whether the directories have changed since this Cache last hydrated or synced.
func (c *Cache) Changed(ctx context.Context) (bool, error) {
	t, err := guard(ctx, c, c.scan)
	if err != nil {
		return false, err
	}
	return !maps.Equal(t.found, c.lastSeen()), nil
}

func (c *Cache) lastSeen() map[string]stamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}

func (c *Cache) say(level, text string) {
	if c.opts.Log != nil {
		c.opts.Log(level, text)
	}
}
