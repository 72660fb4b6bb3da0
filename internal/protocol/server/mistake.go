package server

import (
	"errors"
	"log/slog"
	"net/http"

	"runpodctl-worker/internal/mistake"
)

// Guard has a panic of a handler be an error in the log. As ever, it ends the connection.
func Guard(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := mistake.Catch(func() { next.ServeHTTP(w, r) })
		switch {
		case err == nil:
			return
		case !errors.Is(err, http.ErrAbortHandler):
			log.Error("A call was not answered.", slog.String("call", r.Method+" "+r.URL.Path), slog.Any("error", err))
		}
		panic(http.ErrAbortHandler)
	})
}
