// Package volume keeps a mirror of local directories on a network volume, so that what one worker has downloaded is there when
// the next one starts. Hydrate copies from the mirror to the directories, Sync the other way.
//
// The mirror has the format of the official Python class VolumeCache, which reads what is written here and writes what
// is read here. Everything else that lies there may be damaged or made up by somebody: nothing is written outside the
// directories and nothing is read outside the mirror.
package volume

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Options say what is mirrored where.
type Options struct {
	Volume    string   // where the network volume is mounted
	Namespace string   // the folder of the mirror; one name
	Dirs      []string // what is mirrored
	Copiers   int      // large files that are copied at a time; 0: as many as suit this machine
	// Progress is told a few times a second how far an operation is, and once more at its end. It is not called by two goroutines at once.
	Progress func(Progress)
	// Log gets what somebody should know and what is no error: level is "info" or "warn". It may be called by several goroutines at once.
	Log func(level, text string)
}

// Progress is how far an operation is. The totals are 0 as long as they are not known.
type Progress struct {
	Phase      string `json:"phase"`
	Files      int64  `json:"files"`
	FilesTotal int64  `json:"files_total"`
	Bytes      int64  `json:"bytes"`
	BytesTotal int64  `json:"bytes_total"`
}

// Report is what an operation has done.
type Report struct {
	Files        int     `json:"files"` // copied
	Bytes        int64   `json:"bytes"` // of these
	Links        int     `json:"links"` // made or recorded
	Unchanged    int     `json:"unchanged"`
	Skipped      []Skip  `json:"skipped,omitempty"` // the first of them
	SkippedTotal int     `json:"skipped_total"`
	Seconds      float64 `json:"seconds"`
}

// Skip is a file or link that was left out, and why.
type Skip struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Count is a number of files and what they weigh.
type Count struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Status is what there is on both sides.
type Status struct {
	Mirror    string    `json:"mirror"`            // its folder
	Present   bool      `json:"present"`           // there is a manifest that can be read
	Written   time.Time `json:"written,omitzero"`  // when the last sync ended
	Small     Count     `json:"small"`             // in the archive
	Big       Count     `json:"big"`               // as files of their own
	Links     int       `json:"links"`             // recorded
	ToHydrate Count     `json:"to_hydrate"`        // what Hydrate would copy
	ToSync    Count     `json:"to_sync"`           // what Sync would copy
	Writer    *Writer   `json:"writer,omitempty"`  // who syncs right now
	Skipped   []Skip    `json:"skipped,omitempty"` // what Sync would leave out; the first of them
}

// Writer is a process that syncs.
type Writer struct {
	Host string  `json:"host"`
	PID  int     `json:"pid"`
	Age  float64 `json:"age"` // seconds since it last said that it lives
}

// Findings are what Verify has found. A mirror is sound if there are no problems.
type Findings struct {
	Files         int       `json:"files"` // looked at
	Bytes         int64     `json:"bytes"`
	Unhashed      int       `json:"unhashed"` // files of which only the size could be compared
	Problems      []Problem `json:"problems,omitempty"`
	ProblemsTotal int       `json:"problems_total"`
	Seconds       float64   `json:"seconds"`
}

// Problem is a file of the mirror that is not what the manifest says.
type Problem struct {
	Path string `json:"path"`
	What string `json:"what"`
}

// Pruned is what Prune has removed, or would remove.
type Pruned struct {
	Files []string `json:"files"` // below the mirror
	Bytes int64    `json:"bytes"`
}

var (
	// ErrNoVolume means that there is no directory where the volume should be: nothing is cached.
	ErrNoVolume = errors.New("there is no network volume")
	// ErrBusy means that another worker syncs to the same mirror.
	ErrBusy = errors.New("another worker is syncing")
	// ErrStalled means that the volume, or the local disk, did not answer.
	ErrStalled = errors.New("no progress")
)

// NotMounted is a volume that is a directory of the disk that it should be mounted on. It works like any other, but ends with this machine.
type NotMounted struct{ Path string }

func (e *NotMounted) Error() string {
	return e.Path + " is a directory, but no volume is mounted there: the cache will be gone with this machine"
}

// Cache mirrors directories. Its methods may be called by several goroutines.
type Cache struct {
	opts Options
	mu   sync.Mutex
}

var errLater = errors.New("not built yet")

// New checks the options and resolves the directories. It touches no volume.
func New(opts Options) (*Cache, error) { return &Cache{opts: opts}, nil }

// Available tells whether there is a volume: nil, ErrNoVolume, or a *NotMounted, with which all else works.
func (c *Cache) Available() error { return errLater }

// Hydrate copies what is missing or out of date from the mirror to the directories.
func (c *Cache) Hydrate(ctx context.Context) (Report, error) { return Report{}, errLater }

// Sync copies what has changed from the directories to the mirror.
func (c *Cache) Sync(ctx context.Context) (Report, error) { return Report{}, errLater }

// Changed tells whether the directories have changed since this Cache last hydrated or synced.
func (c *Cache) Changed(ctx context.Context) (bool, error) { return false, errLater }

// Status looks at both sides.
func (c *Cache) Status(ctx context.Context) (Status, error) { return Status{}, errLater }

// Verify reads the whole mirror and compares it with the manifest.
func (c *Cache) Verify(ctx context.Context) (Findings, error) { return Findings{}, errLater }

// Prune removes what lies in the mirror and belongs to nothing: big files that no manifest names, what dead writers left.
func (c *Cache) Prune(ctx context.Context, dryRun bool) (Pruned, error) { return Pruned{}, errLater }
