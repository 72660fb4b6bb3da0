package emulator_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/emulator"
	"runpodctl-worker/test/inprocess"
)

// What the emulator itself costs per call, without a network.
func BenchmarkCalls(b *testing.B) {
	e, err := emulator.New(emulator.Options{Log: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	transport := inprocess.Transport{Handler: e.Handler()}
	send := func(method, path, body string) *http.Response {
		req, _ := http.NewRequest(method, "http://local/v2/local"+path, strings.NewReader(body))
		res, err := transport.RoundTrip(req)
		if err != nil || res.StatusCode != http.StatusOK {
			b.Fatal(res, err)
		}
		return res
	}
	read := func(res *http.Response) string {
		text := make([]byte, res.ContentLength)
		_, _ = res.Body.Read(text)
		return string(text)
	}
	b.Run("run", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			send("POST", "/run", `{"input":{"prompt":"hello","n":3}}`)
		}
	})
	b.Run("status", func(b *testing.B) {
		id := strings.Split(read(send("POST", "/run", `{"input":1}`)), `"`)[3]
		b.ReportAllocs()
		for b.Loop() {
			send("GET", "/status/"+id, "")
		}
	})
	send("POST", "/purge-queue", "")
	b.Run("take and done", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			send("POST", "/run", `{"input":{"prompt":"hello","n":3}}`)
			b.StartTimer()
			id := strings.Split(read(send("GET", "/job-take/w1?gpu=X&job_in_progress=0", "")), `"`)[3]
			send("POST", "/job-done/w1/"+id+"?gpu=X&isStream=false", `{"output":{"prompt":"hello","n":3}}`)
		}
	})
}
