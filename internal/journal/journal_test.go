package journal

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
)

func TestJournal_WhatTheNextProcessFinds(t *testing.T) {
	tests := []struct {
		name    string
		write   func(*Journal)
		owed    []string
		crashes map[string]int
	}{
		{"nothing", func(*Journal) {}, nil, nil},
		{"a job that ran", func(j *Journal) { j.Taken("a") }, nil, nil},
		{"a result", func(j *Journal) { j.Taken("a"); j.Result("a", output(`1`)) }, []string{"a"}, nil},
		{"a large result", func(j *Journal) { j.Taken("a"); j.Result("a", large("x")) }, []string{"a"}, nil},
		{"a result of a job that was not run", func(j *Journal) { j.Result("a", output(`1`)) }, []string{"a"}, nil},
		{"a result that was accepted", func(j *Journal) { j.Taken("a"); j.Result("a", output(`1`)); j.Settled("a") }, nil, nil},
		{"a large one that was accepted", func(j *Journal) { j.Taken("a"); j.Result("a", large("x")); j.Settled("a") }, nil, nil},
		{"results in their order", func(j *Journal) {
			for _, job := range []string{"c", "a", "b"} {
				j.Taken(job)
			}
			for _, job := range []string{"b", "c", "a"} {
				j.Result(job, output(`1`))
			}
		}, []string{"b", "c", "a"}, nil},
		{"a job that was let go", func(j *Journal) { j.Taken("a"); j.Released("a") }, nil, nil},
		{"a result that was let go", func(j *Journal) { j.Taken("a"); j.Result("a", output(`1`)); j.Released("a") }, []string{"a"}, nil},
		{"a job that runs again after its result", func(j *Journal) { j.Result("a", large("x")); j.Taken("a") }, nil, nil},
		{"a later result", func(j *Journal) { j.Result("a", large("x")); j.Result("a", output(`2`)) }, []string{"a"}, nil},
		{"a job that crashed the program", func(j *Journal) {
			j.Taken("a")
			j.Crashed("a")
			j.Result("a", protocol.Outcome{Error: "it died"})
			j.Settled("a")
		}, nil, map[string]int{"a": 1}},
		{"one that did so twice", func(j *Journal) { j.Crashed("a"); j.Crashed("a") }, nil, map[string]int{"a": 2}},
		{"the end of a job that is not known", func(j *Journal) { j.Settled("a"); j.Released("b") }, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := open(t, t.TempDir())
			tt.write(j)
			next := again(t, j)
			jobs, _ := owed(t, next)
			require.Equal(t, tt.owed, jobs)
			require.Len(t, next.Crashes(), len(tt.crashes))
			for job, n := range tt.crashes {
				require.Equal(t, n, next.Crashes()[job])
			}
			third := again(t, next) // it is the same once more
			jobs, _ = owed(t, third)
			require.Equal(t, tt.owed, jobs)
			require.Equal(t, next.Crashes(), third.Crashes())
		})
	}
}

func TestJournal_ResultsComeBackAsTheyWere(t *testing.T) {
	tests := map[string]protocol.Outcome{
		"an output":          output(`{"a":"é"}`),
		"none":               {},
		"null":               output(`null`),
		"an error":           {Error: "no\x00\xff"},
		"a stream":           {Output: []byte(`[]`), Stream: true},
		"both":               {Output: []byte(`1`), Error: "x", Stream: true},
		"large":              large("x"),
		"the largest small":  output(strings.Repeat("1", maxInline-2)),
		"the smallest large": output(strings.Repeat("1", maxInline-1)),
		"a large error":      {Error: strings.Repeat("e", 1<<20)},
	}
	for name, outcome := range tests {
		t.Run(name, func(t *testing.T) {
			j := open(t, t.TempDir())
			j.Result("before", output(`0`))
			j.Result("a", outcome)
			_, results := owed(t, again(t, j))
			require.Equal(t, outcome, results["a"])
			if outcome.Output == nil {
				return
			}
			j = open(t, t.TempDir())
			inFile := spooled(j, outcome)
			j.Result("a", inFile)
			require.Equal(t, outcome, recall(t, j, "a"))
			require.Equal(t, outcome, whole(t, inFile), "it can still be posted")
			_, results = owed(t, again(t, j))
			require.Equal(t, outcome, results["a"])
		})
	}
}

func TestJournal_WhatWaits(t *testing.T) {
	waits := func(j *Journal, want ...protocol.Outcome) {
		t.Helper()
		size := int64(0)
		for _, outcome := range want {
			size += int64(len(outcomeHead(outcome)) + len(outcome.Output))
		}
		n, held := j.Waiting()
		require.Equal(t, len(want), n)
		require.Equal(t, size, held)
	}
	j := open(t, t.TempDir())
	j.Taken("a")
	j.Taken("b")
	waits(j)
	j.Result("a", output(`1`))
	j.Result("b", large("x"))
	waits(j, output(`1`), large("x"))
	j.Released("a")
	next := again(t, j)
	waits(next, output(`1`), large("x"))
	next.Settled("b")
	waits(next, output(`1`))
	next.Settled("a")
	waits(next)
}

func TestJournal_AFreshWorkerIsNotAskedForAgain(t *testing.T) {
	j := open(t, t.TempDir())
	j.Result("a", protocol.Outcome{Output: []byte(`1`), Refresh: true})
	_, results := owed(t, again(t, j))
	require.Equal(t, output(`1`), results["a"])
}

// The death of a worker is held against a job that was alone, but only the second time.
func TestJournal_Suspicion(t *testing.T) {
	tests := []struct {
		name      string
		lives     []func(*Journal)
		want      map[string]int
		suspected []string
	}{
		{"alone once", []func(*Journal){func(j *Journal) { j.Taken("a") }}, map[string]int{}, []string{"a"}},
		{"alone twice", []func(*Journal){func(j *Journal) { j.Taken("a") }, func(j *Journal) { j.Taken("a") }}, map[string]int{"a": 1}, []string{"a"}},
		{"alone twice, with an end between", []func(*Journal){
			func(j *Journal) { j.Taken("a") },
			func(j *Journal) { j.Taken("a"); j.Result("a", output(`1`)); j.Settled("a") },
			func(j *Journal) { j.Taken("a") },
		}, map[string]int{}, []string{"a"}},
		{"alone twice, with a release between", []func(*Journal){
			func(j *Journal) { j.Taken("a") },
			func(j *Journal) { j.Taken("a"); j.Released("a") },
			func(j *Journal) { j.Taken("a") },
		}, map[string]int{"a": 1}, []string{"a"}},
		{"once, and then its end", []func(*Journal){func(j *Journal) { j.Taken("a") }, func(j *Journal) { j.Settled("a") }}, map[string]int{}, nil},
		{"alone, with a life between", []func(*Journal){
			func(j *Journal) { j.Taken("a") },
			func(j *Journal) { j.Taken("b"); j.Settled("b") },
			func(j *Journal) { j.Taken("a") },
		}, map[string]int{"a": 1}, []string{"a"}},
		{"together twice", []func(*Journal){
			func(j *Journal) { j.Taken("a"); j.Taken("b") },
			func(j *Journal) { j.Taken("a"); j.Taken("b") },
		}, map[string]int{}, []string{"a", "b"}},
		{"together, then alone", []func(*Journal){
			func(j *Journal) { j.Taken("a"); j.Taken("b") },
			func(j *Journal) { j.Taken("a") },
		}, map[string]int{}, []string{"a", "b"}},
		{"together, then alone twice", []func(*Journal){
			func(j *Journal) { j.Taken("a"); j.Taken("b") },
			func(j *Journal) { j.Taken("b"); j.Settled("b"); j.Taken("a") },
			func(j *Journal) { j.Taken("a") },
		}, map[string]int{"a": 1}, []string{"a"}},
		{"different ones", []func(*Journal){func(j *Journal) { j.Taken("a") }, func(j *Journal) { j.Taken("b") }}, map[string]int{}, []string{"a", "b"}},
		{"after a crash of the program", []func(*Journal){
			func(j *Journal) { j.Taken("a"); j.Crashed("a"); j.Settled("a"); j.Taken("a") },
			func(j *Journal) { j.Taken("a") },
		}, map[string]int{"a": 2}, []string{"a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := open(t, t.TempDir())
			for _, life := range tt.lives {
				life(j)
				j = again(t, j)
			}
			require.Equal(t, tt.want, j.Crashes())
			var suspected []string
			for _, job := range []string{"a", "b"} {
				if j.Suspected(job) {
					suspected = append(suspected, job)
				}
			}
			require.Equal(t, tt.suspected, suspected)
		})
	}
}

func TestJournal_DoubtsAreBounded(t *testing.T) {
	j := open(t, t.TempDir())
	for i := range maxDoubts + 5 {
		j.Crashed(fmt.Sprint(i))
	}
	crashes := again(t, j).Crashes()
	require.Len(t, crashes, maxDoubts)
	require.NotContains(t, crashes, "4", "the oldest are forgotten")
	require.Contains(t, crashes, "5")
}

// A large output that becomes no result goes with whoever has it, with the journal, or at the next start.
func TestJournal_SpoolsLeaveNothing(t *testing.T) {
	j := open(t, t.TempDir())
	closed, settled, left := spooled(j, output(`1`)), spooled(j, output(`2`)), spooled(j, output(`3`))
	t.Cleanup(left.Drop)
	require.Len(t, files(t, j.dir), 4)
	closed.Drop()
	j.Taken("a")
	j.Result("a", settled)
	require.Equal(t, output(`2`), recall(t, j, "a"))
	j.Settled("a")
	require.Equal(t, output(`2`), whole(t, settled), "as long as it is open")
	require.Len(t, files(t, j.dir), 2, "the segment, and what nobody has closed")
	next := again(t, j)
	require.Len(t, files(t, next.dir), 1)
	left = spooled(next, output(`4`))
	require.NoError(t, next.Close())
	require.NoDirExists(t, next.dir)
	next.Result("late", left)
	require.NoDirExists(t, next.dir)
	_, err := next.Spool()
	require.Error(t, err)
}

// An output that lies in a file of somebody else's is copied.
func TestJournal_ASpoolFromElsewhere(t *testing.T) {
	j := open(t, t.TempDir())
	outcome := spooled(open(t, t.TempDir()), large("x"))
	outcome.Spool = struct{ protocol.Spool }{outcome.Spool}
	j.Result("a", outcome)
	outcome.Drop()
	_, results := owed(t, again(t, j))
	require.Equal(t, large("x"), results["a"])
}

// Whatever is settled leaves nothing behind: segments take turns, files go with their results.
func TestJournal_StaysSmall(t *testing.T) {
	j := open(t, t.TempDir())
	j.Result("old", output(`"old"`))
	j.Result("old and large", large("o"))
	first := segmentOf(t, j.dir)
	body := output(`"` + strings.Repeat("x", maxInline/2) + `"`)
	for i := range 3 * segmentSize / (maxInline / 2) {
		job := fmt.Sprint(i)
		j.Taken(job)
		j.Result(job, body)
		j.Settled(job)
	}
	require.NotEqual(t, first, segmentOf(t, j.dir))
	info, err := os.Stat(segmentOf(t, j.dir))
	require.NoError(t, err)
	require.LessOrEqual(t, info.Size(), int64(segmentSize))
	require.Len(t, files(t, j.dir), 2, "a segment and the large result")
	jobs, results := owed(t, again(t, j))
	require.Equal(t, []string{"old", "old and large"}, jobs)
	require.Equal(t, output(`"old"`), results["old"])
	require.Equal(t, large("o"), results["old and large"])
}

// A segment whose results all wait is not written anew for each record.
func TestJournal_ManyThatWait(t *testing.T) {
	j := open(t, t.TempDir())
	body := output(`"` + strings.Repeat("x", maxInline/2) + `"`)
	turns := 0
	for i := range 2 * segmentSize / (maxInline / 2) {
		before := j.number
		j.Result(fmt.Sprint(i), body)
		turns += int(j.number - before)
	}
	require.LessOrEqual(t, turns, 3)
	jobs, _ := owed(t, again(t, j))
	require.Len(t, jobs, 2*segmentSize/(maxInline/2))
}

// A journal with very many records opens, and what counts of it is all there.
func TestJournal_VeryMany(t *testing.T) {
	const jobs = 40_000 // and 100 000 records
	j := open(t, t.TempDir())
	j.turn = 1 << 40 // no segment is written anew meanwhile, as with a worker that has been owed as much
	for i := range jobs {
		job := strconv.Itoa(i)
		j.Taken(job)
		j.Result(job, output(job))
		if i%2 == 0 {
			j.Settled(job)
		}
	}
	found, results := owed(t, again(t, j))
	require.Len(t, found, jobs/2)
	require.Equal(t, "1", found[0])
	require.Equal(t, output("39999"), results["39999"])
}

func TestJournal_RoomIsBounded(t *testing.T) {
	var log lines
	j := open(t, t.TempDir())
	j.log = log.logger()
	j.mu.Lock()
	j.state.held = maxHeld - maxInline
	j.mu.Unlock()
	j.Result("a", large("x"))
	j.Result("b", large("x"))
	j.Result("c", output(`1`)) // small ones are bounded by the number of jobs
	require.Len(t, log.all(), 1, "said once")
	require.Contains(t, log.all()[0], errHeld.Error())
	jobs, _ := owed(t, again(t, j))
	require.Equal(t, []string{"c"}, jobs)
}

// What could not be written is in the next segment, which is begun with the next record.
func TestJournal_ThereIsRoomAgain(t *testing.T) {
	j := open(t, t.TempDir())
	j.Result("a", output(`1`))
	readOnly, err := os.Open(j.segment.Name())
	require.NoError(t, err)
	require.NoError(t, j.segment.Close())
	j.segment = readOnly
	j.Settled("a")
	j.Crashed("b")
	next := again(t, j)
	jobs, _ := owed(t, next)
	require.Empty(t, jobs)
	require.Equal(t, map[string]int{"b": 1}, next.Crashes())
}

// Where no new segment can be begun, the old one goes on.
func TestJournal_NoRoomForANewSegment(t *testing.T) {
	j := open(t, t.TempDir())
	j.Result("a", output(`1`))
	require.NoError(t, os.Mkdir(j.path(j.number+1, draftEnd), private))
	j.turn = 0
	j.Result("b", output(`2`))
	jobs, _ := owed(t, again(t, j))
	require.Equal(t, []string{"a", "b"}, jobs)
}

func TestJournal_AnIDThatIsTooLong(t *testing.T) {
	var log lines
	j := open(t, t.TempDir())
	j.log = log.logger()
	long := strings.Repeat("i", maxJobID+1)
	j.Taken(long)
	j.Result(long, large("x"))
	j.Result(strings.Repeat("i", maxJobID), output(strings.Repeat("1", maxInline-2)))
	require.Len(t, log.all(), 1)
	require.Len(t, files(t, j.dir), 1, "no file is left of its result")
	jobs, _ := owed(t, again(t, j))
	require.Equal(t, []string{strings.Repeat("i", maxJobID)}, jobs)
}

func TestJournal_ClosedWithNothingLeftItIsGone(t *testing.T) {
	place := t.TempDir()
	j := open(t, place)
	j.Taken("a")
	j.Result("a", large("x"))
	j.Settled("a")
	require.NoError(t, j.Close())
	require.NoDirExists(t, j.dir)
	j.Taken("late") // by a handler that did not come back in time
	j.Result("late", large("x"))
	j.Settled("late")
	require.NoDirExists(t, j.dir)
	require.NoError(t, j.Close())
}

func TestJournal_ClosedAfterASuspicionItIsGone(t *testing.T) {
	j := open(t, t.TempDir())
	j.Taken("a")
	j.Taken("b")
	j = again(t, j)
	j.Settled("a")
	j.Taken("b")
	j.Settled("b")
	require.NoError(t, j.Close())
	require.NoDirExists(t, j.dir)
}

func TestJournal_ClosedWithSomethingLeftItStays(t *testing.T) {
	j := open(t, t.TempDir())
	j.Result("a", output(`1`))
	require.NoError(t, j.Close())
	jobs, _ := owed(t, open(t, filepath.Dir(j.dir)))
	require.Equal(t, []string{"a"}, jobs)
}

func TestJournal_AResultThatCannotBeRead(t *testing.T) {
	damage := map[string]func(path string) error{
		"gone":      os.Remove,
		"cut":       func(path string) error { return os.Truncate(path, maxInline) },
		"changed":   func(path string) error { return flip(path, maxInline, 1) },
		"a folder":  func(path string) error { _ = os.Remove(path); return os.Mkdir(path, 0o700) },
		"too large": func(path string) error { return os.Truncate(path, 3*maxInline) },
	}
	for name, harm := range damage {
		t.Run(name, func(t *testing.T) {
			j := open(t, t.TempDir())
			j.Result("a", large("x"))
			j.Result("b", output(`1`))
			require.NoError(t, harm(j.payload(j.state.jobs["a"].result.file)))
			next := again(t, j)
			outcome, err := next.Recall("a")
			if name != "too large" { // what was written is still there
				require.Error(t, err)
				require.Zero(t, outcome)
			}
			_, err = next.Recall("b")
			require.NoError(t, err)
			next.Settled("a")
			jobs, _ := owed(t, again(t, next))
			require.Equal(t, []string{"b"}, jobs)
		})
	}
}

func TestJournal_ManyAtOnce(t *testing.T) {
	j := open(t, t.TempDir())
	var all sync.WaitGroup
	for slot := range 16 {
		all.Go(func() {
			for i := range 50 {
				job := fmt.Sprintf("%d-%d", slot, i)
				j.Taken(job)
				if rand.N(4) == 0 {
					j.Result(job, large("x"))
				} else {
					j.Result(job, output(`1`))
				}
				if i < 49 {
					j.Settled(job)
				}
			}
		})
	}
	all.Wait()
	jobs, _ := owed(t, again(t, j))
	require.Len(t, jobs, 16)
}

// Somebody clears away what lies there while the worker runs.
func TestJournal_Deleted(t *testing.T) {
	for name, tt := range map[string]struct {
		remove func(t *testing.T, j *Journal)
		kept   bool
	}{
		"the segment": {func(t *testing.T, j *Journal) { t.Helper(); require.NoError(t, os.Remove(segmentOf(t, j.dir))) }, true},
		"everything":  {func(t *testing.T, j *Journal) { t.Helper(); require.NoError(t, os.RemoveAll(filepath.Dir(j.dir))) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var log lines
			j := open(t, t.TempDir())
			j.log = log.logger()
			j.Result("a", output(`1`))
			tt.remove(t, j)
			j.looked = time.Now().Add(-lookEvery)
			j.Result("b", output(`2`))
			j.Result("c", output(`3`))
			if !tt.kept {
				require.Len(t, log.all(), 1, "said once")
				require.Contains(t, log.all()[0], "cannot be written")
				return
			}
			require.Empty(t, log.all())
			jobs, _ := owed(t, again(t, j))
			require.Equal(t, []string{"a", "b", "c"}, jobs)
		})
	}
}
