package emulator

import (
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"runpodctl-worker/internal/protocol/server"
)

// routes are the paths of both APIs.
func (e *Emulator) routes() *echo.Echo {
	r := echo.New()
	r.HTTPErrorHandler = e.routeError
	r.GET("/ping", func(c echo.Context) error {
		server.WriteJSON(c.Response(), http.StatusOK, []byte(`{"status":"ok"}`))
		return nil
	})
	e.docsRoutes(r)
	for _, prefix := range []string{"", "/v2/:endpoint"} {
		e.clientRoutes(r.Group(prefix))
		e.batchRoutes(r.Group(prefix + "/batch"))
		e.workerRoutes(r.Group(prefix), strings.Count(prefix, "/"))
	}
	e.adminRoutes(r.Group("/_emulator"))
	return r
}

// clientRoutes are for those who submit jobs. Some clients POST where the documentation says GET.
func (e *Emulator) clientRoutes(g *echo.Group) {
	both := []string{http.MethodGet, http.MethodPost}
	g.POST("/run", e.on((*endpoint).run))
	g.POST("/runsync", e.on((*endpoint).runsync))
	g.Match(both, "/status/:job", e.on((*endpoint).status))
	g.Match(both, "/status-sync/:job", e.on((*endpoint).statusSync))
	g.Match(both, "/stream/:job", e.on((*endpoint).stream))
	g.POST("/cancel/:job", e.on((*endpoint).cancel))
	g.POST("/retry/:job", e.on((*endpoint).retry))
	g.POST("/purge-queue", e.on((*endpoint).purge))
	g.GET("/health", e.on((*endpoint).health))
	g.GET("/requests", e.on((*endpoint).requests))
	g.Match(openaiMethods, "/openai/v1/*", e.on((*endpoint).openai))
}

// batchRoutes are for those who submit many jobs at a time.
func (e *Emulator) batchRoutes(g *echo.Group) {
	g.POST("", e.on((*endpoint).createBatch))
	g.GET("", e.on((*endpoint).listBatches))
	g.GET("/:batch", e.on(withBatch((*endpoint).readBatch)))
	g.PUT("/:batch", e.on(withBatch((*endpoint).renameBatch)))
	g.POST("/:batch/finalize", e.on(withBatch((*endpoint).finalizeBatch)))
	g.POST("/:batch/cancel", e.on(withBatch((*endpoint).cancelBatch)))
	g.POST("/:batch/requests", e.on(withBatch((*endpoint).addBatchRequests)))
	g.GET("/:batch/requests", e.on(withBatch((*endpoint).listBatchRequests)))
	g.DELETE("/:batch/requests/:request", e.on(withBatch((*endpoint).deleteBatchRequest)))
}

// workerRoutes are for those who run them; depth is how many segments their prefix has.
func (e *Emulator) workerRoutes(g *echo.Group, depth int) {
	for _, call := range []string{"job-take", "job-take-batch", "job-stop", "job-done", "job-stream", "ping"} {
		g.Any("/"+call+"/*", func(c echo.Context) error {
			ep := e.find(c)
			if ep == nil {
				return nil
			}
			// The writer without echo's wrapper: a flush through that hides a broken connection.
			ep.server.Serve(c.Response().Writer, c.Request(), below(c.Request().URL.EscapedPath(), depth))
			return nil
		})
	}
}

// on makes a route of a client's call: it admits the caller, finds the endpoint and words the error.
func (e *Emulator) on(call func(*endpoint, echo.Context) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !server.Authorize(c.Response(), c.Request(), e.opts.APIKey) {
			return nil
		}
		ep := e.find(c)
		if ep == nil {
			return nil
		}
		if ep.limits != nil {
			leave, ok := ep.limits.admit(c)
			if !ok {
				return nil
			}
			defer leave()
		}
		e.word(c, call(ep, c))
		return nil
	}
}

// word answers a call with its error, if there is one.
func (e *Emulator) word(c echo.Context, err error) {
	if err == nil || c.Request().Context().Err() != nil {
		return // answered, or there is nobody to answer to
	}
	if !server.WriteError(c.Response(), err) {
		e.opts.Log.Error("a call failed", "path", c.Request().URL.Path, "error", err)
	}
}

// find is the endpoint that a path names; where there is none, the answer is written.
func (e *Emulator) find(c echo.Context) *endpoint {
	id := c.Param("endpoint")
	if id == "" {
		return e.standard
	}
	ep := e.endpoints[id]
	if ep == nil {
		server.WriteProblem(c.Response(), http.StatusNotFound, "endpoint not found")
	}
	return ep
}

// routeError words what echo itself refuses: unknown paths and methods.
func (e *Emulator) routeError(err error, c echo.Context) {
	status, detail := http.StatusInternalServerError, "internal error"
	if he, ok := errors.AsType[*echo.HTTPError](err); ok {
		status, detail = he.Code, "no such route"
	}
	if status == http.StatusMethodNotAllowed {
		detail = "this route is not called with " + c.Request().Method
	}
	server.WriteProblem(c.Response(), status, detail)
}

// below is a path without its first segments.
func below(path string, depth int) string {
	for range depth {
		path = path[1+strings.IndexByte(path[1:], '/'):]
	}
	return path
}

// tidy forgives doubled and trailing slashes: base URLs with a slash at their end are common.
func tidy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := r.URL.Path; strings.Contains(p, "//") || len(p) > 1 && strings.HasSuffix(p, "/") {
			r = r.Clone(r.Context())
			r.URL.Path, r.URL.RawPath = squeeze(p), squeeze(r.URL.RawPath)
		}
		next.ServeHTTP(w, r)
	})
}

func squeeze(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	return path
}
