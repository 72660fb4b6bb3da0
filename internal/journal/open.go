package journal

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
)

// Open opens the journal of a worker in the first of the places that can have it, and reads what a process before this one
// has left there. The error says why there is none: then nothing outlives this process, which is no reason not to work.
func Open(places []string, worker string, log *slog.Logger) (*Journal, error) {
	var errs []error
	for _, place := range places {
		j, err := openIn(place, worker, log)
		if err == nil {
			return j, nil
		}
		errs = append(errs, err)
		if errors.Is(err, errBusy) { // another place would split what belongs together
			break
		}
	}
	return nil, errors.Join(errs...)
}

func openIn(place, worker string, log *slog.Logger) (*Journal, error) {
	if err := answering(place, prepare); err != nil {
		return nil, err
	}
	dir := filepath.Join(place, dirName(worker))
	lock, err := claim(dir)
	if err != nil {
		return nil, err
	}
	sweep(place, dir)
	j := &Journal{dir: dir, lock: lock, log: log, state: newState()}
	if err := j.begin(); err != nil {
		_ = j.shut()
		return nil, err
	}
	return j, nil
}

// begin reads what is there and goes on from it.
func (j *Journal) begin() error {
	damage, err := j.load()
	if err != nil {
		return err
	}
	if damage != nil {
		j.log.Warn("A journal cannot be read and was set aside; what could be read of it is used.", slog.Any("error", damage))
	}
	if jobs := j.state.bury(); jobs > 0 {
		j.log.Info("The worker before this one was killed. The jobs that it ran are left to the platform, which hands them out again.", slog.Int("jobs", jobs))
	}
	if err := j.rewrite(); err != nil {
		if damage != nil || j.segment == nil {
			return err
		}
		j.turn = j.size + segmentSize
		j.complainLocked(err) // no other goroutine knows it yet
	}
	for _, job := range j.state.ordered() {
		j.owed = append(j.owed, debt{job, j.state.jobs[job].result.size})
	}
	return nil
}

// Close ends the journal; what is noted afterwards is not kept. The directory goes where nothing is left to remember.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.segment == nil {
		return nil
	}
	j.removeDrafts()
	if len(j.state.jobs)+len(j.state.doubts) == 0 {
		_ = os.Remove(j.segment.Name())
		_ = os.Remove(j.lock.Name())
		_ = os.Remove(j.dir) // unless something else is in it
	}
	return j.shut()
}

func (j *Journal) shut() error {
	var err error
	if j.segment != nil {
		err = j.segment.Close()
		j.segment = nil
	}
	if err = errors.Join(err, j.lock.Close()); err != nil {
		return fmt.Errorf("close the journal: %w", err)
	}
	return nil
}
