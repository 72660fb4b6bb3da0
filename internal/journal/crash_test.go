package journal

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"runpodctl-worker/internal/protocol"
)

// The child is this test's own program, run as a worker that is to be killed.
const (
	childVariable = "JOURNAL_TEST_PLACE"
	fileLimit     = "JOURNAL_TEST_FILE_LIMIT" // no file of the child may become larger
	childJobs     = "JOURNAL_TEST_JOBS"       // after so many it ends by itself
)

// child works until it is killed, and tells on standard output what it does: before and after each step.
func child() {
	if limit, err := strconv.ParseUint(os.Getenv(fileLimit), 10, 64); err == nil {
		signal.Ignore(unix.SIGXFSZ)
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			panic(err)
		}
	}
	j, err := Open([]string{os.Getenv(childVariable)}, worker, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		panic(err)
	}
	say := func(what, job string) { _, _ = os.Stdout.WriteString(what + " " + job + "\n") }
	settle := func(job string) {
		say("settle", job)
		j.Settled(job)
		say("settled", job)
	}
	for job := range j.Owed() {
		outcome, err := j.Recall(job)
		if err != nil {
			panic(err)
		}
		body, err := io.ReadAll(outcome.Body(false).Open())
		if want := `{"output":` + string(outcomeOf(job).Output) + `}`; err != nil || string(body) != want {
			panic(fmt.Sprint("not the result of ", job, ": ", err))
		}
		outcome.Drop()
		say("owed", job)
	}
	say("open", "-")
	for job := range j.Owed() {
		if rand.N(2) == 0 {
			settle(job)
		}
	}
	limit, _ := strconv.Atoi(os.Getenv(childJobs))
	for i := 0; limit == 0 || i < limit; i++ {
		job := strconv.FormatUint(rand.Uint64(), 36)
		j.Taken(job)
		outcome := outcomeOf(job)
		if rand.N(2) == 0 {
			outcome = spooled(j, outcome)
		}
		say("result", job)
		j.Result(job, outcome)
		outcome.Drop()
		say("kept", job)
		if rand.N(8) > 0 {
			settle(job)
		}
	}
	if err := j.Close(); err != nil {
		panic(err)
	}
}

// spooled has an output in a file, if that can be written.
func spooled(j *Journal, outcome protocol.Outcome) protocol.Outcome {
	s, err := j.Spool()
	if err != nil {
		return outcome
	}
	if _, err := s.Write(outcome.Output); err != nil {
		_ = s.Close()
		return outcome
	}
	return protocol.Outcome{Spool: s, Error: outcome.Error, Stream: outcome.Stream}
}

// outcomeOf is the result of a job: a few bytes, most of a segment's room, or a file.
func outcomeOf(job string) protocol.Outcome {
	size := [...]int{1, 10, maxInline * 3 / 4, 5 * maxInline}[job[0]%4]
	return output(`"` + strings.Repeat(job, size/len(job)+1) + `"`)
}

// startChild starts the child; its words come through the pipe.
func startChild(t *testing.T, place string, env ...string) (*exec.Cmd, *bufio.Scanner, *lines) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(append(os.Environ(), childVariable+"="+place), env...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	stderr := &lines{}
	cmd.Stderr = stderr
	require.NoError(t, cmd.Start())
	return cmd, bufio.NewScanner(out), stderr
}

// expected is what the next process has to find: true if it must be there, false if it may.
type expected map[string]bool

// follow takes the words of one life.
func (e expected) follow(t *testing.T, words []string) {
	t.Helper()
	found := map[string]bool{}
	for _, word := range words {
		what, job, _ := strings.Cut(word, " ")
		switch what {
		case "owed":
			require.Contains(t, e, job, "owed, but not known or settled")
			found[job] = true
		case "open":
			for job, must := range e {
				require.True(t, found[job] || !must, "%s was lost with its process", job)
			}
			clear(e)
			maps.Copy(e, found)
		case "result", "settle":
			e[job] = false
		case "kept":
			e[job] = true
		case "settled":
			delete(e, job)
		}
	}
}

// PS-01: a worker that is killed at any moment has lost no result that it had kept, and finds none that was settled.
func TestCrash_KilledAgainAndAgain(t *testing.T) {
	place, next, lost := t.TempDir(), expected{}, 0
	for range 100 {
		cmd, out, stderr := startChild(t, place)
		var words []string
		for left := 1 + rand.N(400); left > 0 && out.Scan(); left-- {
			words = append(words, out.Text())
		}
		require.NoError(t, cmd.Process.Kill())
		for out.Scan() { // its last words
			words = append(words, out.Text())
		}
		require.Error(t, cmd.Wait(), "it was killed")
		require.Empty(t, stderr.all())
		next.follow(t, words)
		lost += len(next)
	}
	require.Positive(t, lost, "some were killed with results in their hands")
}

// The next process says how many jobs went down with the one before, where there were any.
func TestCrash_IsTold(t *testing.T) {
	for name, tt := range map[string]struct {
		running []string
		want    string
	}{
		"jobs ran":    {[]string{"a", "b"}, "killed"},
		"nothing ran": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			j := open(t, t.TempDir())
			j.Taken("done")
			j.Result("done", output(`1`))
			for _, job := range tt.running {
				j.Taken(job)
			}
			die(t, j)
			var log lines
			next, err := Open([]string{filepath.Dir(j.dir)}, worker, log.logger())
			require.NoError(t, err)
			defer next.Close()
			if tt.want == "" {
				require.Empty(t, log.all())
				return
			}
			require.Len(t, log.all(), 1)
			require.Contains(t, log.all()[0], tt.want)
			require.Contains(t, log.all()[0], "jobs=2")
		})
	}
}

// A disk that is full costs what does not fit, with one warning; the rest is still there.
func TestCrash_FullDisk(t *testing.T) {
	place, next := t.TempDir(), expected{}
	for range 5 {
		cmd, out, stderr := startChild(t, place, childJobs+"=60", fileLimit+"="+strconv.Itoa(40_000+rand.N(20_000)))
		settled := 0
		for out.Scan() {
			what, job, _ := strings.Cut(out.Text(), " ")
			switch what {
			case "owed":
				require.Contains(t, next, job, "owed, but not known")
			case "result": // that it was settled may not have been written either
				next[job] = false
			case "settled":
				settled++
			}
		}
		require.NoError(t, cmd.Wait(), stderr.all())
		require.Positive(t, settled, "it went on to the end")
		require.Len(t, stderr.all(), 1, "it says so once")
		require.Contains(t, stderr.all()[0], "file too large")
	}
	_, results := owed(t, open(t, place)) // whatever is there is whole
	require.NotEmpty(t, results)
}

// PS-03: a second worker with the same id works without a journal as long as the first one lives.
func TestCrash_TwoWorkersWithOneID(t *testing.T) {
	place := t.TempDir()
	cmd, out, _ := startChild(t, place)
	for out.Scan() && out.Text() != "open -" {
		continue
	}
	_, err := Open([]string{place, t.TempDir()}, worker, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, errBusy)
	other, err := Open([]string{place}, "w2", slog.New(slog.DiscardHandler))
	require.NoError(t, err, "another id has a journal of its own")
	require.NoError(t, other.Close())

	done := make(chan error, 1)
	go func() { // the first is on its way out when the second comes
		done <- cmd.Process.Kill()
	}()
	j, err := Open([]string{place}, worker, slog.New(slog.DiscardHandler))
	require.NoError(t, <-done)
	require.NoError(t, err)
	require.NoError(t, j.Close())
	require.Error(t, cmd.Wait())
}
