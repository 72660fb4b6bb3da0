package worker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// Every call fails now and then: still each job has one accepted result, and none is left.
func TestWorker_ManyJobsManyFaults(t *testing.T) {
	const jobs = 1000
	bubble(t, Config{Concurrency: 16, PingInterval: time.Second}, lasting, func(r *rig) {
		faults := []apidouble.Reply{
			{Status: 500},
			{Status: 502, Body: "<html>", Header: map[string]string{"Content-Type": "text/html"}},
			{Status: 429},
			{Drop: true},
			{Delay: 2 * time.Second, Status: 503},
		}
		for _, kind := range []string{apidouble.Take, apidouble.Done, apidouble.Stop, apidouble.Ping} {
			r.api.On(kind, func(apidouble.Call) *apidouble.Reply {
				if rand.N(10) > 0 {
					return nil
				}
				return &faults[rand.N(len(faults))]
			})
		}
		for i := range jobs {
			offer(r, fmt.Sprintf("j%d-%dms", i, rand.N(500)))
		}
		r.start()
		results := r.results(time.Hour, jobs)
		ids := make([]string, 0, jobs)
		for _, c := range results {
			ids = append(ids, c.Job)
		}
		slices.Sort(ids)
		require.Len(r, slices.Compact(ids), jobs)
		r.drain()
		_, err := r.end(10 * time.Second)
		require.NoError(r, err)
	})
}
