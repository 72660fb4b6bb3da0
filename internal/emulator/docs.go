package emulator

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"runpodctl-worker/internal/emulator/apidoc"
)

// docsPolicy keeps the page from loading anything that is not ours.
const docsPolicy = "default-src 'self'"

// docsRoutes are the description of the API, for programs and for people. They ask for no key: they
// hold nothing but the ids of the endpoints.
func (e *Emulator) docsRoutes(r *echo.Echo) {
	file := func(path, mediaType string, content []byte) {
		r.GET(path, func(c echo.Context) error {
			h := c.Response().Header()
			h.Set("Content-Security-Policy", docsPolicy)
			h.Set("X-Content-Type-Options", "nosniff")
			return c.Blob(http.StatusOK, mediaType, content)
		})
	}
	file("/openapi.json", "application/json", apidoc.Document(e.opts.Endpoints))
	file("/docs", "text/html; charset=utf-8", apidoc.Page)
	file("/docs/page.css", "text/css; charset=utf-8", apidoc.Style)
	file("/docs/page.js", "text/javascript; charset=utf-8", apidoc.Script)
}
