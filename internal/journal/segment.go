package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// segmentSize is when a new segment is begun, which holds only what still counts. Where that fills half of it, later.
	segmentSize = 4 << 20
	// maxSegment is the largest that is read. No journal comes near it.
	maxSegment = 256 << 20

	segmentEnd = ".log"
	payloadEnd = ".out"
	draftEnd   = ".new"
	// damagedName is where a segment goes that cannot be read to its end, in place of the one before it.
	damagedName = "damaged"
)

func (j *Journal) path(number uint64, end string) string {
	return filepath.Join(j.dir, fmt.Sprintf("%016x%s", number, end))
}

func (j *Journal) payload(number uint64) string { return j.path(number, payloadEnd) }

func createFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
}

// turnOver begins a new segment. If that fails, the old one goes on, and the next try comes later. The lock is held.
func (j *Journal) turnOver() {
	if err := j.rewrite(); err != nil {
		j.turn = j.size + segmentSize
		j.complainLocked(err)
	}
}

// rewrite writes what the state says to a new segment, which takes the place of the old one once it is complete.
func (j *Journal) rewrite() error {
	content := j.snapshot()
	j.number++
	draft, path := j.path(j.number, draftEnd), j.path(j.number, segmentEnd)
	if err := writeFile(draft, content); err != nil {
		return err
	}
	if err := os.Rename(draft, path); err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return errors.Join(err, os.Remove(path)) // or the next start would take it for the newest
	}
	if j.segment != nil {
		_ = os.Remove(j.segment.Name()) // the newest counts
		_ = j.segment.Close()
	}
	fresh := newState()
	_, err = scan(content, func(r record) { fresh.apply(r) })
	j.state, j.segment, j.size = fresh, file, int64(len(content))
	j.turn = max(segmentSize, 2*j.size)
	return err
}

// snapshot is a segment with nothing but what still counts.
func (j *Journal) snapshot() []byte {
	content, buf := []byte(magic), []byte(nil)
	for _, job := range j.state.orderedDoubts() {
		d := j.state.doubts[job]
		if d.suspected {
			content = append(content, encode(buf, record{kind: kindSuspected, job: job})...)
		}
		if d.beside {
			content = append(content, encode(buf, record{kind: kindBeside, job: job})...)
		}
		if d.crashes > 0 {
			content = append(content, encode(buf, record{kind: kindCrashed, job: job, count: d.crashes})...)
		}
	}
	for _, job := range j.state.ordered() {
		switch kept := j.state.jobs[job].result; {
		case kept == nil:
			content = append(content, encode(buf, record{kind: kindTaken, job: job})...)
		case kept.file != 0:
			content = append(content, encode(buf, record{kind: kindFile, job: job, result: *kept})...)
		default:
			if data, err := readResult(j.segment, *kept); err == nil { // else it is lost
				content = append(content, seal(append(begin(buf, kindInline, job), data...))...)
			}
		}
	}
	return content
}

// load reads the newest segment that is worth anything, and clears away what no process will ask for. The warning says what
// was set aside.
func (j *Journal) load() (warning, err error) {
	numbers, others, err := j.survey()
	if err != nil {
		return nil, err
	}
	for _, number := range slices.Backward(numbers) {
		if j.segment != nil {
			others = append(others, j.path(number, segmentEnd))
			continue
		}
		if bad := j.loadSegment(j.path(number, segmentEnd)); bad != nil {
			warning = errors.Join(warning, bad)
		}
	}
	needed := map[string]bool{}
	for _, e := range j.state.jobs {
		if e.result != nil && e.result.file != 0 {
			needed[j.payload(e.result.file)] = true
		}
	}
	for _, path := range others {
		if !needed[path] {
			_ = os.Remove(path) // the next start tries again
		}
	}
	return warning, nil
}

// survey lists the numbers of the segments, in order, and the other files that have a number.
func (j *Journal) survey() (segments []uint64, others []string, err error) {
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range entries { // in the order of their names
		digits, end, _ := strings.Cut(entry.Name(), ".")
		number, err := strconv.ParseUint(digits, 16, 64)
		if err != nil || len(digits) != 16 {
			continue // it is not ours
		}
		switch "." + end {
		case segmentEnd:
			segments = append(segments, number)
		case payloadEnd, draftEnd:
			others = append(others, filepath.Join(j.dir, entry.Name()))
		default:
			continue
		}
		if number < 1<<63 { // one that nobody counted up to must not end the counting
			j.number = max(j.number, number)
		}
	}
	return segments, others, nil
}

// removeDrafts clears away the outputs of handlers that have not come back.
func (j *Journal) removeDrafts() {
	_, others, _ := j.survey() // what is not found is for the next start
	for _, path := range others {
		if strings.HasSuffix(path, draftEnd) {
			_ = os.Remove(path)
		}
	}
}

// loadSegment reads a segment, and sets it aside where that cannot be done to its end.
func (j *Journal) loadSegment(path string) error {
	file, content, err := readSegment(path)
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", path, err), j.setAside(path))
	}
	fresh := newState()
	good, err := scan(content, func(r record) { fresh.apply(r) })
	if err != nil && !errors.Is(err, errTorn) {
		err = errors.Join(fmt.Errorf("%s %w after %d bytes", path, err, good), j.setAside(path))
		fresh.forgetRunning() // how they went on is not known
		if good == 0 {
			_ = file.Close()
			return err
		}
	} else {
		err = nil
	}
	j.state, j.segment, j.size = fresh, file, int64(good)
	return err
}

func readSegment(path string) (file *os.File, content []byte, err error) {
	file, err = os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxSegment) {
		err = errDamage
	}
	if err == nil {
		content, err = io.ReadAll(file)
	}
	if err != nil {
		_ = file.Close()
	}
	return file, content, err
}

// setAside keeps a segment that cannot be used for whoever wants to look at it.
func (j *Journal) setAside(path string) error {
	aside := filepath.Join(j.dir, damagedName)
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	return os.Rename(path, aside)
}
