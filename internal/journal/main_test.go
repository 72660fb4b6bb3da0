package journal

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"runpodctl-worker/internal/protocol"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}

const worker = "w1"

// open opens the journal of the worker below place, and closes it with the test.
func open(t testing.TB, place string) *Journal {
	t.Helper()
	j, err := Open([]string{place}, worker, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// die ends a journal as kill -9 would: nothing more is written, and the lock is gone.
func die(t testing.TB, j *Journal) {
	t.Helper()
	require.NoError(t, j.shut())
}

// again is what the next process finds.
func again(t testing.TB, j *Journal) *Journal {
	t.Helper()
	die(t, j)
	return open(t, filepath.Dir(j.dir))
}

func output(value string) protocol.Outcome {
	return protocol.Outcome{Output: json.RawMessage(value)}
}

// large is an output that has a file of its own.
func large(letter string) protocol.Outcome {
	return output(`"` + strings.Repeat(letter, 2*maxInline) + `"`)
}

// owed are the results that a journal has to give back, in order.
func owed(t testing.TB, j *Journal) (jobs []string, results map[string]protocol.Outcome) {
	t.Helper()
	results = map[string]protocol.Outcome{}
	for job, size := range j.Owed() {
		outcome := recall(t, j, job)
		require.Equal(t, int64(len(outcomeHead(outcome))+len(outcome.Output)), size)
		jobs = append(jobs, job)
		results[job] = outcome
	}
	require.Len(t, jobs, len(results), "no job is owed twice")
	return jobs, results
}

// recall is a result with its output in memory.
func recall(t testing.TB, j *Journal, job string) protocol.Outcome {
	t.Helper()
	outcome, err := j.Recall(job)
	require.NoError(t, err)
	return whole(t, outcome)
}

func whole(t testing.TB, outcome protocol.Outcome) protocol.Outcome {
	t.Helper()
	if outcome.Spool == nil {
		return outcome
	}
	output, err := io.ReadAll(io.NewSectionReader(outcome.Spool, 0, outcome.Spool.Size()))
	require.NoError(t, err)
	require.NoError(t, outcome.Spool.Close())
	outcome.Output, outcome.Spool = output, nil
	return outcome
}

// segmentOf is the only segment of a journal.
func segmentOf(t testing.TB, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"+segmentEnd))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

// files are the names of what lies in the directory of a journal, but the lock.
func files(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		if e.Name() != lockName {
			names = append(names, e.Name())
		}
	}
	return names
}

// socketAt leaves a socket that nobody listens at.
func socketAt(path string) error {
	short := filepath.Join(os.TempDir(), "s"+strconv.Itoa(os.Getpid())) // a path may be too long for a socket
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return err
	}
	listener.SetUnlinkOnClose(false)
	return errors.Join(listener.Close(), os.Rename(short, path))
}

// lines collects what is logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(strings.Lines(l.text.String()))
}

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
