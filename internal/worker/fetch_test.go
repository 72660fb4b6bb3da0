package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/worker/apidouble"
)

// JP-02
func TestFetch_FreeSlotIsUsedAtOnce(t *testing.T) {
	bubble(t, Config{Concurrency: 3}, lasting, func(r *rig) {
		offer(r, "a-10s", "b-1s", "c-1s", "d-10s", "e-10s")
		r.start()
		time.Sleep(1100 * time.Millisecond)
		require.Equal(r, 1, r.handler.started("d-10s"))
		require.Equal(r, 1, r.handler.started("e-10s"))
	})
}

func TestFetch_AsksForWhatThereIsRoomFor(t *testing.T) {
	bubble(t, Config{Concurrency: 4}, lasting, func(r *rig) {
		r.start()
		offer(r, "a-10s", "b-10s")
		time.Sleep(time.Second)
		takes := r.api.Calls(apidouble.Take)
		require.Equal(r, "4", takes[0].Query.Get("batch_size"))
		require.Equal(r, "0", takes[0].Query.Get("job_in_progress"))
		last := takes[len(takes)-1]
		require.Equal(r, "1", last.Query.Get("job_in_progress"))
		require.LessOrEqual(r, len(takes), 3)
	})
}

func TestFetch_BusySlotIsNotOverfilled(t *testing.T) {
	bubble(t, Config{}, lasting, func(r *rig) {
		offer(r, "a-10s", "b-10s", "c-10s")
		r.start()
		time.Sleep(9 * time.Second)
		require.Equal(r, 2, r.api.Waiting())
		require.Len(r, r.api.Calls(apidouble.Take), 1)
	})
}

// The next job runs while the result before it is uploaded.
func TestFetch_UploadOverlaps(t *testing.T) {
	bubble(t, Config{}, lasting, func(r *rig) {
		r.api.On(apidouble.Done, func(apidouble.Call) *apidouble.Reply {
			return &apidouble.Reply{Delay: 3 * time.Second, Usual: true}
		})
		offer(r, "a-1s", "b-1s", "c-1s")
		r.start()
		time.Sleep(1100 * time.Millisecond)
		require.Equal(r, 1, r.handler.started("b-1s"), "runs beside the upload of a")
		time.Sleep(2500 * time.Millisecond) // at 3.6 s
		require.Equal(r, 0, r.handler.started("c-1s"), "b finished and keeps its slot until a is delivered")
		time.Sleep(600 * time.Millisecond) // a was delivered at 4 s
		require.Equal(r, 1, r.handler.started("c-1s"))
	})
}

// A slot that always has a job waiting is busy nearly all the time.
func TestFetch_SlotStaysBusy(t *testing.T) {
	bubble(t, Config{}, lasting, func(r *rig) {
		for i := range 100 {
			offer(r, string(rune('A'+i%26))+strings.Repeat("x", i/26)+"-1050ms")
		}
		began := time.Now()
		r.start()
		r.results(200*time.Second, 100)
		require.Greater(r, 105*time.Second.Seconds()/time.Since(began).Seconds(), 0.97)
	})
}

// JP-03
func TestScale_RubbishChangesNothing(t *testing.T) {
	answers := []struct {
		n   int
		err error
	}{{2, nil}, {0, errors.New("None is not a number")}, {0, nil}, {-1, nil}, {0, errors.New(`"x" is not a number`)}, {1e9, nil}}
	bubble(t, Config{}, lasting, func(r *rig) {
		var asked atomic.Int64
		r.handler.ready.Modifier = true
		r.handler.concurrency = func(int) (int, error) {
			a := answers[min(int(asked.Add(1))-1, len(answers)-1)]
			return a.n, a.err
		}
		offer(r, "a-20s", "b-20s", "c-20s")
		r.start()
		time.Sleep(15 * time.Second)
		require.Equal(r, 1, r.api.Waiting(), "two at a time, the last good value")
		require.Len(r, r.logs.atLeast(slog.LevelWarn), 5, "one warning for each")
		require.Less(r, asked.Load(), int64(20), "no busy loop")
	})
}

func TestScale_UpAndDownWhileBusy(t *testing.T) {
	bubble(t, Config{}, lasting, func(r *rig) {
		var wanted atomic.Int64
		wanted.Store(1)
		r.handler.ready.Modifier = true
		r.handler.concurrency = func(int) (int, error) { return int(wanted.Load()), nil }
		offer(r, "a-6s", "b-6s", "c-6s", "d-6s")
		r.start()
		time.Sleep(time.Second / 2)
		require.Equal(r, 3, r.api.Waiting())
		wanted.Store(4)
		time.Sleep(1100 * time.Millisecond)
		require.Equal(r, 0, r.api.Waiting(), "no drain before it grows")
		wanted.Store(1)
		offer(r, "e-6s", "f-6s")
		time.Sleep(6500 * time.Millisecond) // all four have ended
		require.Equal(r, 1, r.api.Waiting(), "one at a time again")
	})
}

func TestScale_HandlerLimit(t *testing.T) {
	bubble(t, Config{Concurrency: 4}, func(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
		return lasting(ctx, job, sink)
	}, func(r *rig) {
		r.start()
		time.Sleep(time.Second)
		r.handler.limit.Store(1)
		offer(r, "a-1s")
		r.results(2*time.Second, 1)
		offer(r, "b-1s", "c-1s", "d-1s", "e-1s", "f-1s", "g-1s")
		time.Sleep(time.Second / 2)
		// The take that was open when the limit fell may still bring more.
		require.GreaterOrEqual(r, r.api.Waiting(), 2)
		require.Len(r, lines(r.logs.atLeast(slog.LevelInfo), "The handler is not async"), 1)
	})
}

// JP-05
func TestFetch_DuplicateIsRunOnce(t *testing.T) {
	bubble(t, Config{Concurrency: 4}, lasting, func(r *rig) {
		offer(r, "j-2s", "j-2s")
		r.start()
		time.Sleep(time.Second)
		offer(r, "j-2s")
		r.results(2*time.Second, 1)
		time.Sleep(3 * time.Second)
		require.Equal(r, 1, r.handler.started("j-2s"))
		require.Len(r, r.logs.atLeast(slog.LevelWarn), 1)
		offer(r, "j-2s")
		time.Sleep(5 * time.Second)
		require.Equal(r, 2, r.handler.started("j-2s"), "offered again after its end, it is run again")
	})
}

// JP-10
func TestFetch_RefusedJobIsLeftAlone(t *testing.T) {
	for _, status := range []int{404, 409, 410, 422} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			bubble(t, Config{}, lasting, func(r *rig) {
				r.api.On(apidouble.Done, func(c apidouble.Call) *apidouble.Reply {
					if c.Job == "refused-100ms" {
						return &apidouble.Reply{Status: status}
					}
					return nil
				})
				r.api.On(apidouble.Take, func(apidouble.Call) *apidouble.Reply {
					if len(r.api.Calls(apidouble.Take))%3 == 0 {
						return nil
					}
					return &apidouble.Reply{Body: apidouble.Job("refused-100ms")}
				})
				offer(r, "a-1s", "b-1s", "c-1s")
				r.start()
				r.results(20*time.Second, 3)
				time.Sleep(30 * time.Second)
				require.Equal(r, maxRefusals, r.handler.started("refused-100ms"), "once a minute at most, from then on")
				require.LessOrEqual(r, len(r.logs.atLeast(slog.LevelWarn)), 2*maxRefusals+1, "it is still held, it was refused, it is left alone")
				time.Sleep(3 * time.Minute)
				require.LessOrEqual(r, r.handler.started("refused-100ms"), maxRefusals+3)
				require.GreaterOrEqual(r, r.handler.started("refused-100ms"), maxRefusals+2)
			})
		})
	}
}

// Who lost a job because it was silent for too long gets it back at once, if it is handed out to it: refusing it again and again
// would use up the tries that the platform gives a job.
func TestFetch_JobThatWasLostIsTakenBack(t *testing.T) {
	bubble(t, Config{}, lasting, func(r *rig) {
		r.api.Script(apidouble.Done, apidouble.Reply{Status: 404})
		offer(r, "lost-1s")
		r.start()
		r.await(time.Minute, "the refusal", func() bool { return len(r.api.Calls(apidouble.Done)) == 1 })
		offer(r, "lost-1s")
		r.results(5*time.Second, 1)
		require.Equal(r, 2, r.handler.started("lost-1s"))
	})
}

// A take that is refused at once costs little, for as long as it goes on.
func TestFetch_RefusedTakesCostLittle(t *testing.T) {
	bubble(t, Config{}, output(`1`), func(r *rig) {
		r.api.On(apidouble.Take, func(apidouble.Call) *apidouble.Reply { return &apidouble.Reply{Status: 500} })
		r.start()
		time.Sleep(10 * time.Minute)
		require.LessOrEqual(r, len(r.api.Calls(apidouble.Take)), 600)
		for i, gap := range gaps(r.api.Calls(apidouble.Take))[1:] {
			require.Greater(r, gap, 500*time.Millisecond, i)
		}
		require.LessOrEqual(r, len(r.logs.atLeast(slog.LevelWarn)), 11, "one in a minute")
	})
}

// JP-06
func TestFetch_OddAnswers(t *testing.T) {
	tests := map[string]apidouble.Reply{
		"204 at once":     {Status: 204},
		"400":             {Status: 400},
		"401":             {Status: 401},
		"500":             {Status: 500},
		"502 with HTML":   {Status: 502, Body: "<html>bad gateway</html>", Header: map[string]string{"Content-Type": "text/html"}},
		"200 empty":       {},
		"200 text/html":   {Body: "<html></html>", Header: map[string]string{"Content-Type": "text/html"}},
		"200 cut JSON":    {Body: `{"id":"j","inp`},
		"200 null":        {Body: "null"},
		"200 bad batch":   {Body: `[null,{"input":{}}]`},
		"redirect":        {Status: 302, Header: map[string]string{"Location": "/login"}},
		"reset":           {Drop: true},
		"brotli unasked":  {Body: "\x8b\x03\x80", Header: map[string]string{"Content-Encoding": "br"}},
		"429, RetryAfter": {Status: 429, Header: map[string]string{"Retry-After": "1"}},
	}
	for name, reply := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{}, output(`1`), func(r *rig) {
				var calls atomic.Int64
				r.api.On(apidouble.Take, func(apidouble.Call) *apidouble.Reply {
					if calls.Add(1) > 1000 { // whoever asks without a pause would keep the time from passing
						return nil
					}
					return &reply
				})
				r.start()
				time.Sleep(5 * time.Second)
				require.LessOrEqual(r, calls.Load(), int64(10))
				time.Sleep(50 * time.Second)
				require.LessOrEqual(r, len(r.logs.atLeast(slog.LevelWarn)), 1)
				r.api.On(apidouble.Take, nil)
				offer(r, "j")
				r.results(3*time.Second, 1)
			})
		})
	}
}

// JP-06
func TestFetch_TooManyRequests(t *testing.T) {
	bubble(t, Config{}, output(`1`), func(r *rig) {
		r.api.Script(apidouble.Take, apidouble.Reply{Status: 429}, apidouble.Reply{Status: 429},
			apidouble.Reply{Status: 429, Header: map[string]string{"Retry-After": "9"}})
		offer(r, "j")
		r.start()
		r.results(25*time.Second, 1)
		g := gaps(r.api.Calls(apidouble.Take))
		require.GreaterOrEqual(r, g[0], 5*time.Second)
		require.GreaterOrEqual(r, g[1], 5*time.Second)
		require.GreaterOrEqual(r, g[2], 9*time.Second)
		require.Len(r, r.logs.atLeast(slog.LevelWarn), 1)
	})
}

// JP-06
func TestFetch_UnreachablePlatform(t *testing.T) {
	for name, failure := range map[string]error{
		"DNS":     &net.DNSError{Err: "no such host", Name: "platform.test", IsNotFound: true},
		"refused": &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{}, output(`1`), func(r *rig) {
				var dials atomic.Int64
				var healthy atomic.Bool
				r.redial(func(ctx context.Context, network, addr string) (net.Conn, error) {
					if healthy.Load() {
						return r.api.Dial(ctx, network, addr)
					}
					dials.Add(1)
					return nil, failure
				})
				r.start()
				time.Sleep(5 * time.Second)
				require.LessOrEqual(r, dials.Load(), int64(10+10), "takes, and the stop channel and heartbeats")
				require.Len(r, lines(r.logs.atLeast(slog.LevelWarn), "Failed to get job."), 1)
				healthy.Store(true)
				offer(r, "j")
				r.results(3*time.Second, 1)
			})
		})
	}
}

// A poll that was held and found nothing is made again at once.
func TestFetch_LongPollIsRepeatedAtOnce(t *testing.T) {
	bubble(t, Config{}, output(`1`), func(r *rig) {
		r.api.Hold = 2 * time.Second
		r.start()
		time.Sleep(21 * time.Second)
		require.Len(r, r.api.Calls(apidouble.Take), 11)
		require.Empty(r, r.logs.atLeast(slog.LevelWarn))
	})
}

// The good jobs of a batch run although one of it is broken.
func TestFetch_BadEntryHarmsNoOther(t *testing.T) {
	bubble(t, Config{Concurrency: 8}, output(`1`), func(r *rig) {
		r.api.Script(apidouble.Take, apidouble.Reply{Body: `[{"id":"a","input":1},null,{"input":{}},{"id":"b"},7,{"id":"c","inp`})
		r.start()
		time.Sleep(time.Second)
		var got []string
		for _, c := range r.api.Accepted(apidouble.Done) {
			got = append(got, c.Job)
		}
		require.ElementsMatch(r, []string{"a", "b"}, got)
		require.Len(r, r.logs.atLeast(slog.LevelWarn), 1)
		offer(r, "d", "e")
		r.results(3*time.Second, 4)
	})
}

// HC-05
func TestResult_AnyValue(t *testing.T) {
	for _, value := range []string{`{}`, `[]`, `[1,2]`, `""`, `"<&>"`, `0`, `7`, `false`, `null`, `{"a":"é😀"}`} {
		t.Run(value, func(t *testing.T) {
			bubble(t, Config{}, output(value), func(r *rig) {
				offer(r, "j")
				r.start()
				post := r.results(time.Second, 1)[0]
				require.Equal(r, `{"output":`+value+`}`, post.Body)
				require.Equal(r, "false", post.Query.Get("isStream"))
				require.Equal(r, "application/x-www-form-urlencoded", post.Header.Get("Content-Type"))
				require.Equal(r, "secret", post.Header.Get("Authorization"))
				require.Equal(r, "j", post.Header.Get("X-Request-Id"))
				require.Equal(r, http.StatusOK, post.Status)
			})
		})
	}
}

func lines(all []string, prefix string) (found []string) {
	for _, line := range all {
		if strings.HasPrefix(line, prefix) {
			found = append(found, line)
		}
	}
	return found
}

// LG-04
func TestLog_LinesNameTheJob(t *testing.T) {
	bubble(t, Config{}, output(`1`), func(r *rig) {
		r.api.Offer(`{"id":"j","batchId":"b7","input":1}`)
		r.start()
		r.results(time.Second, 1)
		synctest.Wait()
		require.Equal(r, []string{"Started. job=j batch=b7"}, lines(r.logs.atLeast(slog.LevelInfo), "Started."))
		require.Equal(r, []string{"Finished. job=j batch=b7"}, lines(r.logs.atLeast(slog.LevelInfo), "Finished."))
	})
}
