package emulator

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"runpodctl-worker/internal/protocol/server"
)

// adminRoutes are for the person in front of the emulator: nothing like them exists hosted.
func (e *Emulator) adminRoutes(g *echo.Group) {
	g.Match([]string{http.MethodGet, http.MethodPost, http.MethodDelete}, "/faults", e.admin(echo.WrapHandler(e.faults)))
	g.GET("/logs/:job", e.admin(e.jobLog))
}

// admin lets those in who may also submit jobs.
func (e *Emulator) admin(h echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !server.Authorize(c.Response(), c.Request(), e.opts.APIKey) {
			return nil
		}
		e.word(c, h(c))
		return nil
	}
}
