package cli

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/volume"
	"runpodctl-worker/internal/worker"
)

// scripted is an engine whose operations take as long as a test says, and notes when they began.
type scripted struct {
	available error
	hydrate   func(ctx context.Context) error
	sync      func(ctx context.Context) error
	began     time.Time

	mu      sync.Mutex
	changed bool
	looks   []time.Duration
	syncs   []time.Duration
	running int
	most    int
}

func (s *scripted) Available() error { return s.available }

func (s *scripted) Hydrate(ctx context.Context) (volume.Report, error) {
	if s.hydrate == nil {
		return volume.Report{Files: 3, Bytes: 3 << 20, Unchanged: 4, Seconds: 1.5}, nil
	}
	return volume.Report{}, s.hydrate(ctx)
}

func (s *scripted) Sync(ctx context.Context) (volume.Report, error) {
	s.mu.Lock()
	s.syncs = append(s.syncs, time.Since(s.began))
	s.running++
	s.most = max(s.most, s.running)
	s.changed = false
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
	}()
	if s.sync != nil {
		return volume.Report{}, s.sync(ctx)
	}
	return volume.Report{Files: 1}, nil
}

func (s *scripted) Changed(context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks = append(s.looks, time.Since(s.began))
	return s.changed, nil
}

func (s *scripted) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = true
}

// takes is an operation that lasts, or ends with its context.
func takes(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func fails(err error) func(context.Context) error { return func(context.Context) error { return err } }

const incomplete = "WARN   | VolumeCache: not everything could be hydrated; the handler starts with what is there, and the mirror stays as it is. | error="

// kept is a warmCache in a bubble, with the signals that its worker gets.
type kept struct {
	*testing.T
	*scripted
	*warmCache
	log          buffer
	life         lifecycle
	first, again context.CancelFunc
}

func inBubble(t *testing.T, test func(k *kept)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		k := &kept{T: t, scripted: &scripted{began: time.Now()}}
		log, err := newLogger(&k.log, func(string) (string, bool) { return "", false }, nil, "", "text", false)
		require.NoError(t, err)
		k.warmCache = &warmCache{
			fill: k.scripted, keep: k.scripted, mirror: "/v/.cache/ep", log: log,
			changed: make(chan struct{}, 1), done: make(chan struct{}),
		}
		k.life.fetch, k.first = context.WithCancel(t.Context())
		k.life.work, k.again = context.WithCancel(t.Context())
		defer k.first()
		defer k.again()
		test(k)
		k.end()
	})
}

func (k *kept) job() {
	k.watch(worker.Observer{}).Returned(protocol.Job{}, 0)
}

func TestWarmCache_Hydrate(t *testing.T) {
	tests := []struct {
		name      string
		available error
		hydrate   func(context.Context) error
		timeout   time.Duration
		took      time.Duration
		signal    bool
		log       string
	}{
		{name: "it is filled", log: "INFO   | VolumeCache: hydrated 3 file(s) from /v/.cache/ep: 3.0 MiB in 1.5s, 4 unchanged\n"},
		{
			name: "a folder in place of the volume", available: &volume.NotMounted{Path: "/v"},
			log: "INFO   | VolumeCache: hydrated 3 file(s) from /v/.cache/ep: 3.0 MiB in 1.5s, 4 unchanged\n" +
				"WARN   | VolumeCache: /v is a directory, but no volume is mounted there: the cache will be gone with this machine\n",
		},
		{name: "no volume", hydrate: fails(volume.ErrNoVolume), log: "INFO   | VolumeCache: nothing is cached: there is no network volume\n"},
		{name: "it fails", hydrate: fails(errors.New("input/output error")), log: incomplete + "input/output error\n"},
		{
			name: "it takes too long", hydrate: takes(time.Hour), timeout: time.Minute, took: time.Minute,
			log: incomplete + "it was not done after 1m0s (--cache-timeout)\n",
		},
		{name: "a signal comes", hydrate: takes(time.Hour), timeout: time.Minute, signal: true, took: time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(k *kept) {
				k.available, k.scripted.hydrate, k.timeout = tt.available, tt.hydrate, tt.timeout
				if tt.signal {
					time.AfterFunc(time.Second, k.first)
				}
				k.warmCache.hydrate(k.life.fetch)
				require.Equal(k, tt.took, time.Since(k.began))
				require.Equal(k, tt.log, k.log.String())
			})
		})
	}
}

// It syncs when the program is ready, and again once jobs are done that changed something, however many end at about the same time.
func TestWarmCache_SyncsAfterJobs(t *testing.T) {
	inBubble(t, func(k *kept) {
		k.begin(k.life, 0)
		time.Sleep(time.Minute)
		for range 5 { // these change nothing
			k.job()
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		k.touch()
		k.job()
		time.Sleep(time.Hour)
		k.first()
		k.end()
		require.Equal(k, []time.Duration{0, 135 * time.Second}, k.syncs)
		require.Equal(k, []time.Duration{70 * time.Second, 135 * time.Second, time.Hour + 125*time.Second}, k.looks)
	})
}

func TestWarmCache_LooksByItselfWhereNoJobIsSeen(t *testing.T) {
	inBubble(t, func(k *kept) {
		k.begin(k.life, lookInterval)
		time.Sleep(90 * time.Second)
		k.touch()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(k, []time.Duration{0, 2 * time.Minute}, k.syncs)
	})
}

// What is changed while a sync runs is synced afterwards, never beside it.
func TestWarmCache_OneSyncAtATime(t *testing.T) {
	inBubble(t, func(k *kept) {
		k.scripted.sync = takes(time.Minute)
		k.begin(k.life, 0)
		for range 60 {
			k.touch()
			k.job()
			time.Sleep(5 * time.Second)
		}
		synctest.Wait()
		require.Equal(k, 1, k.most)
		require.Len(k, k.syncs, 5, "a minute each, and ten seconds between")
	})
}

// The end waits for the last sync, but not for ever.
func TestWarmCache_End(t *testing.T) {
	tests := []struct {
		name  string
		sync  func(context.Context) error // nil: at once
		grace time.Duration
		clean bool // nothing has changed
		after func(k *kept)
		took  time.Duration
		syncs int
	}{
		{name: "something has changed", syncs: 2},
		{name: "nothing has changed", clean: true, syncs: 1},
		{name: "it takes its time", sync: takes(5 * time.Second), took: 5 * time.Second, syncs: 2},
		{name: "it would take too long", sync: takes(time.Hour), took: lastSyncTime, syncs: 2},
		{name: "the grace period ends", sync: takes(time.Hour), grace: 4 * time.Second, took: 4 * time.Second, syncs: 2},
		{name: "a second signal", sync: takes(time.Hour), after: func(k *kept) { time.AfterFunc(2*time.Second, k.again) }, took: 2 * time.Second, syncs: 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(k *kept) {
				k.grace = tt.grace
				k.begin(k.life, 0)
				synctest.Wait()
				k.scripted.sync = tt.sync
				if !tt.clean {
					k.touch()
				}
				k.first()
				if tt.after != nil {
					tt.after(k)
				}
				began := time.Now()
				k.end()
				require.Equal(k, tt.took, time.Since(began))
				require.Len(k, k.syncs, tt.syncs)
				require.Equal(k, tt.took != 0 && tt.took != 5*time.Second, strings.Contains(k.log.String(), "the last sync was cut short"))
			})
		})
	}
	t.Run("in the middle of a sync", func(t *testing.T) {
		inBubble(t, func(k *kept) {
			k.scripted.sync = takes(6 * time.Second)
			k.begin(k.life, 0)
			time.Sleep(2 * time.Second)
			k.touch()
			k.first()
			k.end()
			require.Equal(k, []time.Duration{0, 6 * time.Second}, k.syncs, "once more, since there is time left")
			require.Equal(k, 12*time.Second, time.Since(k.began))
		})
	})
	t.Run("of a program that was never ready", func(t *testing.T) {
		inBubble(t, func(k *kept) {
			k.end()
			require.Empty(k, k.syncs)
		})
	})
	t.Run("of what could not be hydrated", func(t *testing.T) { // or the mirror would lose it
		inBubble(t, func(k *kept) {
			k.scripted.hydrate = fails(errors.New("input/output error"))
			k.warmCache.hydrate(k.life.fetch)
			k.begin(k.life, 0)
			k.end()
			require.Empty(k, k.syncs)
		})
	})
}

func TestWarmCache_Failures(t *testing.T) {
	tests := []struct {
		name  string
		err   error
		syncs int // within ten minutes, with a job that changes something in each
		log   string
	}{
		{"a volume that is full", errors.New("no space left on device"), 10, "WARN   | VolumeCache: the mirror stays as it was. | error=no space left on device\n"},
		{"a volume that does not answer", volume.ErrStalled, 1, "WARN   | VolumeCache: the mirror stays as it was. | error=no progress\n"},
		{"another worker syncs", volume.ErrBusy, 60, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(k *kept) {
				k.scripted.sync = func(context.Context) error { k.touch(); return tt.err }
				k.begin(k.life, 0)
				for range 9 {
					time.Sleep(time.Minute)
					k.job()
				}
				time.Sleep(time.Minute - time.Millisecond)
				synctest.Wait()
				require.Len(k, k.syncs, tt.syncs)
				require.Equal(k, tt.log, k.log.String(), "said once")
			})
		})
	}
}

// Metrics hear of what was copied, and whoever watches jobs still does.
func TestWarmCache_Told(t *testing.T) {
	inBubble(t, func(k *kept) {
		var directions []string
		k.told = func(direction string, _ volume.Report) { directions = append(directions, direction) }
		k.warmCache.hydrate(k.life.fetch)
		k.begin(k.life, 0)
		synctest.Wait()
		require.Equal(k, []string{"hydrate", "sync"}, directions)

		var ran time.Duration
		k.watch(worker.Observer{Returned: func(_ protocol.Job, d time.Duration) { ran = d }}).Returned(protocol.Job{}, time.Second)
		require.Equal(k, time.Second, ran)
	})
	var none *warmCache
	none.hydrate(t.Context())
	none.begin(lifecycle{}, 0)
	none.end()
	require.Nil(t, none.watch(worker.Observer{}).Returned)
}
