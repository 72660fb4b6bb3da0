package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/worker/apidouble"
)

// seen keeps what an observer was told.
type seen struct {
	mu     sync.Mutex
	events []string
	pings  int
	takes  int
}

func (s *seen) add(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, fmt.Sprintf(format, args...))
}

func (s *seen) observer() Observer {
	return Observer{
		Took:     func(jobs int, _ time.Duration, _ error) { s.mu.Lock(); s.takes += jobs; s.mu.Unlock() },
		Started:  func(job protocol.Job) { s.add("%s started", job.ID) },
		Returned: func(job protocol.Job, ran time.Duration) { s.add("%s returned after %s", job.ID, ran) },
		Ended: func(job protocol.Job, how End, wait time.Duration) {
			s.add("%s %s after %s", job.ID, how, wait.Round(time.Second))
		},
		Pinged:    func(error) { s.mu.Lock(); s.pings++; s.mu.Unlock() },
		Restarted: func() { s.add("restarted") },
	}
}

func (s *seen) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

func (s *seen) counted() (takes, pings int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takes, s.pings
}

func TestObserver_HearsOfEachEnd(t *testing.T) {
	const second = "job-1s"
	for _, tt := range []struct {
		name   string
		cfg    Config
		handle handleFunc
		during func(*rig) // while the job runs, or as it was offered
		want   []string
	}{
		{"a result", Config{}, lasting, nil, []string{"job-1s started", "job-1s returned after 1s", "job-1s completed after 0s"}},
		{"an error", Config{}, func(context.Context, protocol.Job, protocol.Sink) (protocol.Outcome, error) {
			return protocol.Outcome{Error: "no"}, nil
		}, nil, []string{"job-1s started", "job-1s returned after 0s", "job-1s failed after 0s"}},
		{
			"a result that is too large",
			Config{MaxResult: 40},
			output(`"0123456789012345678901234567890123456789"`), nil,
			[]string{"job-1s started", "job-1s returned after 0s", "job-1s failed after 0s"},
		},
		{
			"a time limit",
			Config{JobTimeout: 500 * time.Millisecond},
			lasting, nil,
			[]string{"job-1s started", "job-1s returned after 500ms", "job-1s failed after 0s"},
		},
		{"a stop by the platform", Config{}, lasting, func(r *rig) {
			time.Sleep(100 * time.Millisecond)
			r.api.StopJobs(second)
		}, []string{"job-1s started", "job-1s stopped after 0s"}},
		{"the end of the worker", Config{}, lasting, func(r *rig) {
			time.Sleep(100 * time.Millisecond)
			r.abort()
		}, []string{"job-1s started", "job-1s released after 0s"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := new(seen)
			tt.cfg.Observer = s.observer()
			bubble(t, tt.cfg, tt.handle, func(r *rig) {
				r.start()
				offer(r, second)
				r.await(time.Minute, "a start", func() bool { return len(s.all()) > 0 })
				if tt.during != nil {
					tt.during(r)
				}
				r.await(time.Minute, "the end", func() bool { return containsAll(s.all(), tt.want) })
				takes, pings := s.counted()
				require.Equal(t, 1, takes)
				require.Positive(t, pings)
			})
		})
	}
}

// Results of a former process are seen too, though no handler of this one had their jobs.
func TestObserver_HearsOfLateResults(t *testing.T) {
	for _, tt := range []struct {
		name string
		code int // of the answer to the late result
		end  func(*rig)
		want string
	}{
		{"accepted", 200, nil, "old-0 completed after 0s"},
		{"unwanted", 409, nil, "old-0 undelivered after 0s"},
		{"stopped", 503, func(r *rig) { r.api.StopJobs("old-0") }, "old-0 stopped after 10s"},
		{"left to the next process", 503, func(r *rig) { r.abort() }, "old-0 released after 10s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := new(seen)
			bubble(t, Config{Observer: s.observer(), Journal: past{results: 1, size: 5}}, lasting, func(r *rig) {
				r.api.On(apidouble.Done, func(apidouble.Call) *apidouble.Reply { return &apidouble.Reply{Status: tt.code} })
				r.start()
				if tt.end != nil {
					time.Sleep(10 * time.Second)
					jobs := r.worker.Status().Jobs
					require.Len(t, jobs, 1)
					require.Equal(t, Delivering, jobs[0].State)
					tt.end(r)
				}
				r.await(time.Minute, "the end", func() bool { return len(s.all()) > 0 })
				require.Equal(t, []string{tt.want}, s.all())
			})
		})
	}
}

func TestObserver_ALateResultThatIsLost(t *testing.T) {
	s := new(seen)
	bubble(t, Config{Observer: s.observer(), Journal: forgetful{past{results: 1}}}, lasting, func(r *rig) {
		r.start()
		r.await(time.Minute, "the end", func() bool { return len(s.all()) > 0 })
		require.Equal(t, []string{"old-0 undelivered after 0s"}, s.all())
	})
}

// forgetful is a journal whose results cannot be read.
type forgetful struct{ past }

func (forgetful) Recall(string) (protocol.Outcome, error) {
	return protocol.Outcome{}, errors.New("the disk is broken")
}

func TestObserver_HearsWhatThePlatformDoesNotTake(t *testing.T) {
	for _, tt := range []struct {
		name  string
		codes []int
		want  string
	}{
		{"something small in its place", []int{413, 200}, "j failed after 0s"},
		{"not even that", []int{413, 413}, "j undelivered after 0s"},
		{"unwanted", []int{410}, "j undelivered after 0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := new(seen)
			bubble(t, Config{Observer: s.observer()}, output(`1`), func(r *rig) {
				for _, code := range tt.codes {
					r.api.Script(apidouble.Done, apidouble.Reply{Status: code})
				}
				r.start()
				offer(r, "j")
				r.await(time.Minute, "the end", func() bool { return slices.Contains(s.all(), tt.want) })
			})
		})
	}
}

func containsAll(have, want []string) bool {
	for _, w := range want {
		if !slices.Contains(have, w) {
			return false
		}
	}
	return true
}

func TestObserver_HearsOfANewStart(t *testing.T) {
	s := new(seen)
	bubble(t, Config{Observer: s.observer()}, lasting, func(r *rig) {
		r.start()
		offer(r, "a-1h")
		r.await(time.Minute, "a start", func() bool { return len(s.all()) > 0 })
		r.handler.crash(errors.New("killed"))
		r.await(time.Minute, "a new start", func() bool { return slices.Contains(s.all(), "restarted") })
	})
}

func TestStatus_FollowsTheWorker(t *testing.T) {
	bubble(t, Config{Concurrency: 2}, lasting, func(r *rig) {
		r.handler.startTime = time.Minute
		require.Equal(t, Loading, r.worker.Status().Phase, "before Run")
		r.start()
		time.Sleep(time.Second)
		require.Equal(t, Status{Phase: Loading, Slots: 2, Jobs: []HeldJob{}}, r.worker.Status())
		r.await(2*time.Minute, "ready", func() bool { return r.worker.Status().Phase == Ready })

		offer(r, "a-10s", "b-30s")
		r.await(time.Minute, "two jobs", func() bool { return len(r.worker.Status().Jobs) == 2 })
		time.Sleep(time.Second)
		for _, job := range r.worker.Status().Jobs {
			require.Equal(t, Running, job.State)
			require.InDelta(t, time.Second, time.Since(job.Taken), float64(time.Second))
		}
		r.results(time.Minute, 1)
		r.drain()
		time.Sleep(time.Millisecond)
		status := r.worker.Status()
		require.Equal(t, Draining, status.Phase)
		require.Len(t, status.Jobs, 1)
		require.Equal(t, "b-30s", status.Jobs[0].ID)
		_, err := r.end(time.Minute)
		require.NoError(t, err)
		require.Equal(t, Draining, r.worker.Status().Phase)
		require.Empty(t, r.worker.Status().Jobs)
		require.Len(t, r.api.Accepted(apidouble.Done), 2)
	})
}
