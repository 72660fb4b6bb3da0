package volume

import (
	"errors"
	"sync"
	"time"
)

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
	Files        int     `json:"files"`           // copied
	Bytes        int64   `json:"bytes"`           // of these
	Small        int     `json:"small,omitempty"` // of these files, how many a hydrate took out of the archive
	Links        int     `json:"links"`           // made or recorded
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

func (c *Count) add(size int64) {
	c.Files++
	c.Bytes += size
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
	Removed       []string  `json:"removed,omitempty"` // to repair it; below the mirror
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
type NotMounted struct{ Path string } //nolint:errname // a state of the volume, before it is an error

func (e *NotMounted) Error() string {
	return e.Path + " is a directory, but no volume is mounted there: the cache will be gone with this machine"
}

// maxSkips bounds the list of what was left out; the total goes on.
const maxSkips = 50

// skips collects what is left out.
type skips struct {
	mu    sync.Mutex
	list  []Skip
	total int
}

func (s *skips) add(path, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total++
	if len(s.list) < maxSkips {
		s.list = append(s.list, Skip{path, reason})
	}
}
