package worker

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/journal"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/worker/apidouble"
)

// disk is where the journals of a worker lie, one life after the other.
type disk struct {
	testing.TB
	place string
	open  *journal.Journal
}

func newDisk(t testing.TB) *disk {
	t.Helper()
	d := &disk{TB: t, place: t.TempDir()}
	t.Cleanup(func() { _ = d.journal().Close() })
	return d
}

// journal opens what the life before this one has left.
func (d *disk) journal() *journal.Journal {
	d.Helper()
	if d.open != nil {
		_ = d.open.Close()
	}
	j, err := journal.Open([]string{d.place}, "w1", slog.New(slog.DiscardHandler))
	require.NoError(d, err)
	d.open = j
	return j
}

// freeze keeps what is on the disk now for the next life, whatever is still written to it.
func (d *disk) freeze() {
	d.Helper()
	place := d.TempDir()
	require.NoError(d, os.CopyFS(place, os.DirFS(d.place)))
	d.place = place
}

// owed are the jobs whose results wait in the journal.
func (d *disk) owed() (jobs []string) {
	for job := range d.journal().Owed() {
		jobs = append(jobs, job)
	}
	return jobs
}

// kill ends the worker as kill -9 would, and puts another one in its place, which has not started.
func (r *rig) kill(d *disk) {
	r.Helper()
	synctest.Wait()
	d.freeze()
	r.abort()
	<-r.ended
	synctest.Wait() // or the platform hands what comes next to the take that was open
	cfg := r.worker.cfg
	cfg.Journal = d.journal()
	r.handler = newFakeHandler(r.handler.handle)
	r.lives = nil
	r.worker = New(cfg, r.born, r.worker.platform)
	r.ended = make(chan struct{})
}

// onDisk is a bubble with a worker that has a journal.
func onDisk(t *testing.T, cfg Config, handle handleFunc, test func(*rig, *disk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t)
		cfg.Journal = d.journal()
		r := newRig(t, cfg, handle)
		test(r, d)
		r.stop()
	})
}

// down makes the platform refuse results until the returned function is called.
func down(r *rig) (up func()) {
	r.api.On(apidouble.Done, func(apidouble.Call) *apidouble.Reply { return &apidouble.Reply{Status: 503} })
	return func() { r.api.On(apidouble.Done, nil) }
}

func TestJournal_AResultThatWasNotDelivered(t *testing.T) {
	tests := map[string]handleFunc{
		"an output":   output(`"` + strings.Repeat("x", 100) + `"`),
		"a large one": output(`"` + strings.Repeat("x", 100_000) + `"`),
		"an error": func(context.Context, protocol.Job, protocol.Sink) (protocol.Outcome, error) {
			return protocol.Outcome{Error: "boom"}, nil
		},
		"a stream": func(_ context.Context, _ protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
			return protocol.Outcome{Output: []byte(`[]`)}, sink.Chunk([]byte(`1`))
		},
	}
	for name, handle := range tests {
		t.Run(name, func(t *testing.T) {
			onDisk(t, Config{PingInterval: time.Second}, handle, func(r *rig, d *disk) {
				up := down(r)
				offer(r, "j")
				r.start()
				r.await(time.Minute, "a post", func() bool { return len(r.api.Calls(apidouble.Done)) > 0 })
				r.kill(d)
				up()
				before := len(r.api.Calls(apidouble.Ping))
				r.start()
				got := r.results(time.Minute, 1)[0]
				first := r.api.Calls(apidouble.Done)[0]
				require.Equal(r, "j", got.Job)
				require.Equal(r, first.Body, got.Body)
				require.Equal(r, first.Query, got.Query)
				time.Sleep(10 * time.Minute)
				r.results(time.Minute, 1)
				require.Zero(r, r.handler.started("j"), "it is not run again")
				for _, ping := range r.api.Calls(apidouble.Ping)[before+1:] {
					require.Empty(r, ping.Query.Get("job_id"), "it has its end")
				}
				r.drain()
				_, err := r.end(time.Minute)
				require.NoError(r, err)
				require.Empty(r, d.owed())
			})
		})
	}
}

func TestJournal_AResultThatThePlatformHasAnotherEndFor(t *testing.T) {
	onDisk(t, Config{}, output(`1`), func(r *rig, d *disk) {
		up := down(r)
		offer(r, "j")
		r.start()
		r.await(time.Minute, "a post", func() bool { return len(r.api.Calls(apidouble.Done)) > 0 })
		r.kill(d)
		up()
		r.api.Script(apidouble.Done, times(maxRefusals, apidouble.Reply{Status: 409})...)
		before := len(r.api.Calls(apidouble.Done))
		r.start()
		for n := range maxRefusals {
			r.await(time.Minute, "the refusal", func() bool {
				return len(r.api.Calls(apidouble.Done)) == before+1+n && len(r.worker.ledger.ids()) == 0
			})
			offer(r, "j") // the platform knows best why
		}
		r.results(time.Minute, 1)
		require.Equal(r, maxRefusals, r.handler.started("j"), "the first refusal was about another process")
		r.drain()
		_, err := r.end(time.Minute)
		require.NoError(r, err)
		require.Empty(r, d.owed())
	})
}

// The job is held until its late result is delivered: it is named in pings, and not run a second time.
func TestJournal_ALateJobIsHeld(t *testing.T) {
	onDisk(t, Config{PingInterval: time.Second}, output(`1`), func(r *rig, d *disk) {
		up := down(r)
		offer(r, "j")
		r.start()
		r.await(time.Minute, "a post", func() bool { return len(r.api.Calls(apidouble.Done)) > 0 })
		r.kill(d)
		r.start()
		offer(r, "j", "new")
		time.Sleep(time.Minute)
		pings := r.api.Calls(apidouble.Ping)
		require.Contains(r, pings[len(pings)-1].Query.Get("job_id"), "j")
		require.Zero(r, r.handler.started("j"))
		require.Equal(r, 1, r.handler.started("new"))
		up()
		r.results(2*time.Minute, 2)
		r.api.StopJobs("j") // it is nobody's any more
	})
}

func TestJournal_ALateJobIsStopped(t *testing.T) {
	onDisk(t, Config{}, output(`1`), func(r *rig, d *disk) {
		down(r)
		offer(r, "j")
		r.start()
		r.await(time.Minute, "a post", func() bool { return len(r.api.Calls(apidouble.Done)) > 0 })
		r.kill(d)
		r.start()
		time.Sleep(time.Minute)
		r.api.StopJobs("j")
		r.await(time.Minute, "the stop", func() bool { return len(r.worker.ledger.ids()) == 0 })
		r.drain()
		_, err := r.end(time.Minute)
		require.NoError(r, err)
		require.Empty(r, d.owed())
	})
}

// PS-03: a job that ran is neither named nor posted; whoever gets it next runs it.
func TestJournal_ARunningJobIsReleased(t *testing.T) {
	onDisk(t, Config{PingInterval: time.Second, PingEarly: true}, lasting, func(r *rig, d *disk) {
		offer(r, "j-1h")
		r.start()
		r.await(time.Minute, "the start", func() bool { return r.handler.started("j-1h") == 1 })
		r.kill(d)
		before := len(r.api.Calls(apidouble.Ping))
		r.start()
		time.Sleep(10 * time.Minute)
		for _, ping := range r.api.Calls(apidouble.Ping)[before:] {
			require.Empty(r, ping.Query.Get("job_id"))
		}
		require.Empty(r, r.api.Calls(apidouble.Done))
		offer(r, "j-1h")
		r.results(2*time.Hour, 1)
		require.Equal(r, 1, r.handler.started("j-1h"))
	})
}

// JP-12: who took the program down does not get another chance from the next process.
func TestJournal_CrashesAreRemembered(t *testing.T) {
	onDisk(t, Config{}, crashing, func(r *rig, d *disk) {
		offer(r, "crash-1s", "good-1s")
		r.start()
		r.results(time.Minute, 2)
		r.kill(d)
		r.start()
		offer(r, "crash-1s", "good-1s")
		for _, c := range r.results(time.Minute, 4)[2:] {
			require.Equal(r, c.Job == "crash-1s", strings.Contains(c.Body, crasherText), c.Body)
		}
		require.Zero(r, r.handler.started("crash-1s"))
	})
}

// JP-12: who was alone with a worker that died is run once more; then it is enough.
func TestJournal_AWorkerThatDiesOfAJob(t *testing.T) {
	onDisk(t, Config{}, lasting, func(r *rig, d *disk) {
		for range 2 {
			offer(r, "j-1h")
			r.start()
			r.await(time.Minute, "the start", func() bool { return r.handler.started("j-1h") == 1 })
			r.kill(d)
		}
		require.Empty(r, r.api.Calls(apidouble.Done))
		r.start()
		offer(r, "j-1h")
		require.Contains(r, r.results(time.Minute, 1)[0].Body, crasherText)
		require.Zero(r, r.handler.started("j-1h"))
	})
}

// JP-12: of several jobs that were in a worker that died, each is run by itself in the next, so that the guilty one is found and
// the others do not die of it.
func TestJournal_SuspectsAreRunAlone(t *testing.T) {
	var inside, crowded atomic.Int64
	handle := func(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
		if inside.Add(1) > 1 {
			crowded.Add(1)
		}
		defer inside.Add(-1)
		return lasting(ctx, job, sink)
	}
	onDisk(t, Config{Concurrency: 4}, handle, func(r *rig, d *disk) {
		offerRest := func() { // as the platform does with jobs that have no end
			jobs := []string{"good-1s", "kill-1h", "fine-2s"}
			for _, c := range r.api.Accepted(apidouble.Done) {
				jobs = slices.DeleteFunc(jobs, func(job string) bool { return job == c.Job })
			}
			offer(r, jobs...)
		}
		offerRest()
		r.start()
		r.await(time.Minute, "the start of all", func() bool { return inside.Load() == 3 })
		crowded.Store(0)
		for range 2 { // the worker dies of it when it is alone, too: the first time, that is a suspicion
			r.kill(d)
			offerRest()
			r.start()
			r.await(time.Minute, "the start of the killer", func() bool { return r.handler.started("kill-1h") == 1 })
		}
		r.kill(d)
		offerRest()
		r.start()
		for _, c := range r.results(time.Minute, 3) {
			require.Equal(r, c.Job == "kill-1h", strings.Contains(c.Body, crasherText), c.Body)
		}
		require.Zero(r, crowded.Load())
		offer(r, "a-1s", "b-1s")
		r.results(time.Minute, 5)
		require.EqualValues(r, 1, crowded.Load(), "whoever is not suspected runs beside others")
	})
}

// A worker that is told to stop at once leaves its results to the next; jobs that ran are nobody's suspects.
func TestJournal_CutShort(t *testing.T) {
	onDisk(t, Config{Concurrency: 2}, lasting, func(r *rig, d *disk) {
		up := down(r)
		offer(r, "done-1s", "running-1h")
		r.start()
		r.await(time.Minute, "a post", func() bool { return len(r.api.Calls(apidouble.Done)) > 0 })
		r.drain()
		r.abort()
		_, err := r.end(time.Minute)
		require.Error(r, err)
		require.Equal(r, []string{"done-1s"}, d.owed())
		require.Empty(r, d.open.Crashes())
		require.False(r, d.open.Suspected("running-1h"))
		up()
	})
}

// What the platform does not decide about is tried again by the next process.
func TestJournal_GivenUp(t *testing.T) {
	onDisk(t, Config{}, output(`1`), func(r *rig, d *disk) {
		r.api.On(apidouble.Done, func(apidouble.Call) *apidouble.Reply { return &apidouble.Reply{Status: 401} })
		offer(r, "j")
		r.start()
		r.await(time.Hour, "the end of its patience", func() bool {
			return len(r.api.Calls(apidouble.Done)) == maxDenials && len(r.worker.ledger.ids()) == 0
		})
		r.drain()
		_, err := r.end(time.Minute)
		require.NoError(r, err)
		require.Equal(r, []string{"j"}, d.owed())
	})
}

// A result that the platform refuses for what it is does not come back.
func TestJournal_Refused(t *testing.T) {
	for _, code := range []int{400, 413, 404, 410} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			onDisk(t, Config{}, output(`1`), func(r *rig, d *disk) {
				r.api.On(apidouble.Done, func(apidouble.Call) *apidouble.Reply { return &apidouble.Reply{Status: code} })
				offer(r, "j")
				r.start()
				r.await(time.Hour, "the refusal", func() bool {
					return len(r.api.Calls(apidouble.Done)) > 0 && len(r.worker.ledger.ids()) == 0
				})
				r.drain()
				_, err := r.end(time.Minute)
				require.NoError(r, err)
				require.Empty(r, d.owed())
			})
		})
	}
}

// past is a journal of results that were never written.
type past struct {
	noJournal
	results int
	size    int64
	broken  error // they cannot be read
}

func (p past) Owed() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		for i := range p.results {
			if !yield(fmt.Sprintf("old-%d", i), p.size) {
				return
			}
		}
	}
}

func (p past) Recall(string) (protocol.Outcome, error) {
	return protocol.Outcome{Output: []byte(`"old"`)}, p.broken
}

// New work goes on beside old results, unless there are too many of them.
func TestLate_BesideNewWork(t *testing.T) {
	tests := map[string]struct {
		past  past
		works bool
	}{
		"a few":     {past{results: 20, size: 10}, true},
		"the bound": {past{results: maxLate, size: 10}, true},
		"too many":  {past{results: maxLate + 1, size: 10}, false},
		"too large": {past{results: 1, size: maxWaitingBytes + 1}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{Journal: tt.past}, output(`1`), func(r *rig) {
				var works atomic.Bool
				r.api.On(apidouble.Done, func(c apidouble.Call) *apidouble.Reply {
					if !works.Load() && strings.HasPrefix(c.Job, "old") {
						return &apidouble.Reply{Status: 503, Delay: time.Second}
					}
					return nil
				})
				offer(r, "new")
				r.start()
				time.Sleep(time.Minute)
				require.Equal(r, tt.works, len(r.api.Accepted(apidouble.Done)) == 1, "the new job is done")
				works.Store(true)
				r.results(10*time.Minute, tt.past.results+1)
				r.drain()
				_, err := r.end(time.Minute)
				require.NoError(r, err)
				l := r.worker.ledger
				require.Zero(r, l.late+l.turns+int(l.owed), "nothing is counted any more")
			})
		})
	}
}

// A late result that cannot be read any more is lost, and nothing else: its job may come again, and the worker can end.
func TestLate_CannotBeRead(t *testing.T) {
	bubble(t, Config{Journal: past{results: 1, broken: errors.New("rot")}}, output(`1`), func(r *rig) {
		r.start()
		time.Sleep(time.Second)
		require.Len(r, r.logs.atLeast(slog.LevelError), 1)
		offer(r, "old-0")
		require.Equal(r, `{"output":1}`, r.results(time.Minute, 1)[0].Body)
		r.drain()
		_, err := r.end(time.Minute)
		require.NoError(r, err)
	})
}

// Only so many late results are posted at a time; those that fail make way for the others.
func TestLate_TakeTurns(t *testing.T) {
	bubble(t, Config{Journal: past{results: 50}}, output(`1`), func(r *rig) {
		most := 0
		r.api.On(apidouble.Done, func(c apidouble.Call) *apidouble.Reply {
			if len(r.api.Posts(apidouble.Done, c.Job)) == 1 && strings.HasSuffix(c.Job, "1") {
				return &apidouble.Reply{Status: 503}
			}
			return &apidouble.Reply{Delay: time.Second}
		})
		r.start()
		for len(r.api.Accepted(apidouble.Done)) < 50 {
			open := 0
			for _, c := range r.api.Calls(apidouble.Done) {
				open += count(c.Status == 0)
			}
			most = max(most, open)
			time.Sleep(100 * time.Millisecond)
		}
		require.GreaterOrEqual(r, most, maxLatePosts)
		require.LessOrEqual(r, most, maxLatePosts+5, "those that are tried again come on top")
	})
}

// A worker that ends before its program is ready leaves late results as they are, or delivers them.
func TestLate_TheProgramIsNotReady(t *testing.T) {
	t.Run("it does not start", func(t *testing.T) {
		bubble(t, Config{Journal: past{results: 3}}, output(`1`), func(r *rig) {
			down(r)
			r.handler.startTime, r.handler.startError = time.Second, errors.New("no model")
			r.start()
			reason, err := r.end(time.Minute)
			require.Equal(r, NotStarted, reason)
			require.ErrorContains(r, err, "no model")
			_, unsettled := errors.AsType[*UnsettledError](err)
			require.False(r, unsettled)
		})
	})
	t.Run("it is told to stop", func(t *testing.T) {
		bubble(t, Config{Journal: past{results: 3}}, output(`1`), func(r *rig) {
			up := down(r)
			r.handler.startTime = time.Hour
			r.start()
			time.Sleep(time.Minute)
			r.drain()
			time.Sleep(time.Minute)
			up()
			reason, err := r.end(5 * time.Minute)
			require.NoError(r, err)
			require.Equal(r, Drained, reason)
			r.results(0, 3)
		})
	})
}

// However often the worker is killed, each job gets its end, and no second one: the journal knows of none that was settled.
func TestJournal_KilledAgainAndAgain(t *testing.T) {
	const jobs, kills = 200, 30
	onDisk(t, Config{Concurrency: 8, PingInterval: time.Second, MaxCrashes: -1}, lasting, func(r *rig, d *disk) {
		var mu sync.Mutex
		ended := map[string]bool{} // the platform takes the first end of a job
		r.api.On(apidouble.Done, func(c apidouble.Call) *apidouble.Reply {
			mu.Lock()
			defer mu.Unlock()
			switch fault := rand.N(10); {
			case fault == 0:
				return &apidouble.Reply{Status: 503}
			case fault == 1:
				return &apidouble.Reply{Drop: true}
			case ended[c.Job]:
				return &apidouble.Reply{Status: 409}
			case fault == 2: // the reply is lost
				ended[c.Job] = true
				return &apidouble.Reply{Drop: true, Delay: time.Second}
			}
			ended[c.Job] = true
			return nil
		})
		var ids []string
		for i := range jobs {
			ids = append(ids, fmt.Sprintf("j%d-%dms", i, rand.N(2000)))
		}
		open := func() (left []string) {
			mu.Lock()
			defer mu.Unlock()
			return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return ended[id] })
		}
		offerAgain := func() { // what was running when its worker was killed
			if r.api.Waiting() == 0 {
				offer(r, open()...)
			}
		}
		r.start()
		offer(r, ids...)
		for range kills {
			time.Sleep(rand.N(4 * time.Second))
			r.kill(d)
			r.start()
			offerAgain()
		}
		for end := time.Now().Add(time.Hour); len(open()) > 0; time.Sleep(time.Minute) {
			require.True(r, time.Now().Before(end), "without an end: %v", open())
			offerAgain()
		}
		for _, c := range r.api.Calls(apidouble.Done) {
			require.Equal(r, `{"output":"done"}`, c.Body, c.Job)
		}
		r.drain()
		_, err := r.end(time.Hour)
		require.NoError(r, err)
		require.Empty(r, d.owed())
	})
}
