package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// A failed GPU costs the program, once. A worker whose program does not get well says so before it ends.
func TestSickGPU(t *testing.T) {
	t.Parallel()
	w := runWorker(t, apidouble.New(t), "sick_gpu.py", nil)
	sick := func(id string) {
		w.Offer(`{"id":"` + id + `","input":{"sick":true}}`)
		require.Contains(t, w.result(t, id).errorText(t), "illegal memory access")
	}
	pid := func(id string) int {
		w.Offer(`{"id":"` + id + `","input":{"n":1}}`)
		return decode[int](t, w.result(t, id).Output)
	}
	first := pid("a")
	sick("b")
	second := pid("c")
	require.NotEqual(t, first, second)
	require.Equal(t, second, pid("d"))

	for i := range 3 {
		sick(fmt.Sprint("s", i))
	}
	require.Equal(t, 1, w.wait(t))
	var unhealthy []apidouble.Call
	for _, ping := range w.Calls(apidouble.Ping) {
		if ping.Query.Get("status") == "unhealthy" {
			unhealthy = append(unhealthy, ping)
		}
	}
	require.Len(t, unhealthy, 1)
	require.Equal(t, "handler_program", unhealthy[0].Query.Get("check"))
	require.Contains(t, unhealthy[0].Query.Get("reason"), "3 times in a row")
}

// HC-10: the limits are flags, and exact.
func TestHC10LimitsAreFlags(t *testing.T) {
	t.Parallel()
	w := runWorker(t, apidouble.New(t), "value.py", nil, "--max-result", "1kB")
	deep := `{"a":{"b":[{"c":["` + strings.Repeat("x", 2000) + `"]}]}}`
	w.Offer(`{"id":"deep","input":{"value":` + deep + `}}`)
	require.Contains(t, w.result(t, "deep").errorText(t), fmt.Sprintf("%d bytes, the limit is 1000", len(deep)+len(`{"output":}`)))
	w.Offer(`{"id":"small","input":{"value":1}}`)
	require.Empty(t, w.result(t, "small").Error)
}
