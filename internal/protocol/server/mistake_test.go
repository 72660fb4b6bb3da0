package server_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol/server"
)

func TestGuard(t *testing.T) {
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		fine    bool
		log     string
	}{
		"an answer": {func(http.ResponseWriter, *http.Request) {}, true, ""},
		"a panic":   {func(http.ResponseWriter, *http.Request) { panic("out of order") }, false, `level=ERROR msg="A call was not answered." call="GET /x" error="a mistake in this program: out of order, at `},
		"an abort":  {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false, ""},
		"half of it": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			panic("late")
		}, true, "late, at "},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			srv := httptest.NewServer(server.Guard(tt.handler, slog.New(slog.NewTextHandler(&log, nil))))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/x?key=planted", nil)
			require.NoError(t, err)
			resp, err := srv.Client().Do(req)
			if err == nil {
				require.NoError(t, resp.Body.Close())
			}
			srv.Close() // the log is complete
			require.Equal(t, tt.fine, err == nil, err)
			require.Contains(t, log.String(), tt.log)
			require.Equal(t, min(len(tt.log), 1), strings.Count(log.String(), "\n"))
			require.NotContains(t, log.String(), "planted")
		})
	}
}
