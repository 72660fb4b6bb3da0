package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"runpodctl-worker/internal/journal"

	"runpodctl-worker/test/child"
)

// stale is older than what a worker that starts may take for the files of another that lives.
const stale = 5 * time.Minute

// leftovers is what the workers of a trial have left behind them.
type leftovers struct {
	owed      int // results in the journal
	wary      int // jobs that are not to be run again
	files     []string
	processes []string
}

// leftovers looks for them once the last worker has ended.
func (k *killing) leftovers() (l leftovers, err error) {
	if l.processes, err = k.awaitProcesses(); err != nil {
		return l, err
	}
	if err := k.sweep(); err != nil {
		return l, err
	}
	place := filepath.Join(k.dir, stateName)
	j, err := journal.Open([]string{place}, workerID, slog.New(slog.DiscardHandler))
	if err != nil {
		return l, err
	}
	l.wary = len(j.Crashes())
	for range j.Owed() {
		l.owed++
	}
	if err := j.Close(); err != nil {
		return l, err
	}
	places := []string{filepath.Join(k.dir, tempName)}
	if l.wary == 0 {
		places = append(places, place)
	}
	for _, place := range places {
		entries, err := os.ReadDir(place)
		if err != nil {
			return l, err
		}
		for _, e := range entries {
			l.files = append(l.files, filepath.Join(place, e.Name()))
		}
	}
	return l, nil
}

// sweep starts and ends one more worker, to which everything that killed ones left is old.
func (k *killing) sweep() error {
	entries, err := os.ReadDir(filepath.Join(k.dir, tempName))
	if err != nil {
		return err
	}
	for _, e := range entries {
		at := time.Now().Add(-stale)
		if err := os.Chtimes(filepath.Join(k.dir, tempName, e.Name()), at, at); err != nil {
			return err
		}
	}
	before := k.worker
	defer before.Stop()
	if k.worker, err = k.platform.startWorker(k.options, k.dir); err != nil {
		return err
	}
	if _, err := k.platform.submit([]work{{N: len(k.jobs)}}, k.news.url); err != nil { // its end shows that the worker is there
		return err
	}
	if err := k.platform.awaitEnds(k.options, len(k.jobs)+1, k.worker.Alive); err != nil {
		return err
	}
	_, err = k.worker.Term()
	return err
}

// awaitProcesses waits until nothing runs any more that a worker has started, and returns what does so nevertheless.
func (k *killing) awaitProcesses() (commands []string, err error) {
	for end := time.Now().Add(child.Patience); ; time.Sleep(100 * time.Millisecond) {
		if commands, err = startedBelow(filepath.Join(k.dir, tempName)); err != nil || len(commands) == 0 || time.Now().After(end) {
			return commands, err
		}
	}
}

// startedBelow are the commands of the processes that have a directory for their temporary one.
func startedBelow(temp string) (commands []string, err error) {
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}
	for _, path := range environs {
		raw, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(raw, []byte("TMPDIR="+temp+"\x00")) { // it may have ended meanwhile
			continue
		}
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		commands = append(commands, string(bytes.ReplaceAll(command, []byte{0}, []byte{' '})))
	}
	return commands, nil
}

func (l leftovers) write(w io.Writer) {
	row(w, "results left in the journal", l.owed)
	row(w, "jobs that took down what ran them", l.wary)
	row(w, "files left", len(l.files))
	row(w, "processes left", len(l.processes))
}

func (l leftovers) wrong() (errs []error) {
	if l.owed > 0 {
		errs = append(errs, fmt.Errorf("%d results are left in the journal", l.owed))
	}
	for _, file := range l.files {
		errs = append(errs, errors.New("left behind: "+file))
	}
	for _, command := range l.processes {
		errs = append(errs, errors.New("still running: "+command))
	}
	return errs
}
