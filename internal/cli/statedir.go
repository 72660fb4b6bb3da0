package cli

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/journal"
)

// stateNone is the --state-dir of a worker that is to keep nothing.
const stateNone = "none"

// statePlaces are where the journal may lie, given what --state-dir says.
func (s *session) statePlaces(flag string) ([]string, error) {
	switch flag {
	case stateNone:
		return nil, nil
	case "":
		home, _ := s.Lookup(config.StateHome)
		return journal.Places(home), nil
	}
	dir, err := filepath.Abs(flag)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flagStateDir, err)
	}
	return []string{dir}, nil
}

// openJournal opens the worker's journal, and returns what ends it. That there can be none is no reason not to work.
func (h *workerHost) openJournal() (end func()) {
	if len(h.options.statePlaces) == 0 {
		return func() {}
	}
	j, err := journal.Open(h.options.statePlaces, h.platform.ID, h.log)
	if err != nil {
		h.log.Warn("There is no journal: what this worker owes is lost if it is killed. Give a local directory with --"+flagStateDir+", or none.", slog.Any("error", err))
		return func() {}
	}
	h.journal, h.spool = j, j.Spool
	h.watched.keeps(j)
	return func() {
		if err := j.Close(); err != nil {
			h.log.Warn("The journal has no clean end.", slog.Any("error", err))
		}
	}
}
