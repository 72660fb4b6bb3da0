package host

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func newAsker() *asker { return &asker{busy: map[string]chan struct{}{}} }

func TestAsk(t *testing.T) {
	broken := errors.New("input/output error")
	for _, tt := range []struct {
		name  string
		takes time.Duration
		err   error
		want  string // the error
	}{
		{"at once", 0, nil, ""},
		{"in time", time.Second, nil, ""},
		{"an error", time.Second, broken, broken.Error()},
		{"not in time", time.Minute, nil, "no answer within 2s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, err := ask(t.Context(), newAsker(), "/v", func() (int, error) { time.Sleep(tt.takes); return 7, tt.err })
				if tt.want != "" {
					require.EqualError(t, err, tt.want)
				} else {
					require.NoError(t, err)
					require.Equal(t, 7, got)
				}
				time.Sleep(time.Hour)
			})
		})
	}
}

func TestAsk_OneCallAtMostHangsOnAPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, back := newAsker(), make(chan struct{})
		var calls atomic.Int32
		dead := func() (int, error) { calls.Add(1); <-back; return 1, nil }
		for range 5 {
			_, err := ask(t.Context(), a, "/dead", dead)
			require.ErrorContains(t, err, "no answer")
		}
		require.EqualValues(t, 1, calls.Load())

		_, err := ask(t.Context(), a, "/alive", func() (int, error) { return 1, nil })
		require.NoError(t, err, "other paths do not suffer")

		close(back)
		synctest.Wait()
		_, err = ask(t.Context(), a, "/dead", dead)
		require.NoError(t, err, "it is asked again once it is back")
	})
}

func TestAsk_TwoWhoAskAtOnceBothGetAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, other := newAsker(), make(chan error)
		slow := func() (int, error) { time.Sleep(askLimit / 4); return 1, nil }
		go func() { _, err := ask(t.Context(), a, "/v", slow); other <- err }()
		_, err := ask(t.Context(), a, "/v", slow)
		require.NoError(t, err)
		require.NoError(t, <-other)
	})
}

func TestAsk_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		_, err := ask(ctx, newAsker(), "/v", func() (int, error) { time.Sleep(time.Minute); return 0, nil })
		require.Error(t, err)
		require.Equal(t, time.Second, time.Since(began))
		time.Sleep(time.Minute)
	})
}
