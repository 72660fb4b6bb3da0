package journal

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"runpodctl-worker/internal/protocol"
)

// lookEvery is how often the journal sees to it that its segment is still there.
const lookEvery = time.Second

var (
	errHeld  = errors.New("the results that wait take up all the room that there is for them")
	errJobID = errors.New("the id of a job is too long")
)

// note appends the record that decide makes, if it wants one. decide gets what is known of the job, and runs with the lock held.
func (j *Journal) note(job string, decide func(*entry) (record, bool)) {
	j.mu.Lock()
	r, wanted := decide(j.state.jobs[job])
	if !wanted {
		j.mu.Unlock()
		return
	}
	j.buf = encode(j.buf, r)
	obsolete := j.append(r)
	j.mu.Unlock()
	j.discard(obsolete)
}

// noteInline appends a result that lies in the segment.
func (j *Journal) noteInline(job string, head, output []byte) {
	kept := result{size: int64(len(head) + len(output)), sum: checksum(head, output)}
	j.mu.Lock()
	j.buf = begin(j.buf, kindInline, job)
	kept.at = int64(len(j.buf)) // in the record: append knows where that begins
	j.buf = append(append(j.buf, head...), output...)
	j.buf = seal(j.buf)
	obsolete := j.append(record{kind: kindInline, job: job, result: kept})
	j.mu.Unlock()
	j.discard(obsolete)
}

// append writes the record that buf holds, and makes it part of the state. It returns the number of a file that is not needed any
// more, or 0. The lock is held.
//
// A record that cannot be written counts all the same, and the next segment will have it, but for a result that
// lies nowhere else.
func (j *Journal) append(r record) (obsolete uint64) {
	if j.segment == nil {
		return r.result.file
	}
	if len(r.job) > maxJobID {
		j.complainLocked(errJobID)
		return r.result.file
	}
	if j.size+int64(len(j.buf)) > j.turn || j.deleted() {
		j.turnOver()
	}
	if _, err := j.segment.WriteAt(j.buf, j.size); err != nil {
		_ = j.segment.Truncate(j.size) // what is left there is read as damage
		j.turn = 0                     // the next record finds out whether there is room again
		j.complainLocked(err)
		if r.kind == kindInline {
			return 0
		}
		return j.state.apply(r)
	}
	if r.kind == kindInline {
		r.result.at += j.size
	}
	j.size += int64(len(j.buf))
	return j.state.apply(r)
}

// deleted tells whether the segment is nowhere to be found any more, which writing to it does not show. It looks now and then.
func (j *Journal) deleted() bool {
	now := time.Now()
	if now.Sub(j.looked) < lookEvery {
		return false
	}
	j.looked = now
	info, err := j.segment.Stat()
	if err != nil {
		return false // writing says why
	}
	file, ok := info.Sys().(*syscall.Stat_t)
	return ok && file.Nlink == 0
}

// roomFor tells whether so many bytes may be kept beside those that are.
func (j *Journal) roomFor(size int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state.held+size <= maxHeld
}

// discard removes the file of a result that is not needed any more.
func (j *Journal) discard(file uint64) {
	if file != 0 {
		_ = os.Remove(j.payload(file)) // the next start tries again
	}
}

func (j *Journal) complain(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.complainLocked(err)
}

func (j *Journal) complainLocked(err error) {
	if j.said {
		return
	}
	j.said = true
	j.log.Warn("The journal cannot be written. What is not in it is lost if this process is killed.", slog.String("directory", j.dir), slog.Any("error", err))
}

// read returns a result.
func (j *Journal) read(job string) (protocol.Outcome, error) {
	j.mu.Lock()
	e := j.state.jobs[job]
	if e == nil || e.result == nil || j.segment == nil {
		j.mu.Unlock()
		return protocol.Outcome{}, os.ErrNotExist
	}
	kept := *e.result
	if kept.file != 0 {
		j.mu.Unlock()
		return j.recall(kept)
	}
	defer j.mu.Unlock()
	data, err := readResult(j.segment, kept)
	if err != nil {
		return protocol.Outcome{}, err
	}
	return decodeOutcome(data)
}

// readResult returns the bytes of a result that lies in the segment.
func readResult(file *os.File, kept result) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if kept.at < 0 || kept.size > info.Size()-kept.at { // before so much memory is asked for
		return nil, errOutcome
	}
	data := make([]byte, kept.size)
	if _, err := file.ReadAt(data, kept.at); err != nil {
		return nil, fmt.Errorf("%w: %w", errOutcome, err)
	}
	if checksum(data, nil) != kept.sum {
		return nil, errOutcome
	}
	return data, nil
}
