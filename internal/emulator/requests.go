package emulator

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/labstack/echo/v4"

	"runpodctl-worker/internal/protocol"
)

// How many jobs a list holds, and may hold.
const (
	listed    = 100
	maxListed = 1000
)

// requests lists the newest jobs, without their outputs: those can be large, and are read one by one.
func (ep *endpoint) requests(c echo.Context) error {
	limit, err := number(c, "limit", listed, 1, maxListed)
	if err != nil {
		return err
	}
	jobs, err := ep.store.List(c.Request().Context(), limit)
	if err != nil {
		return err
	}
	b := buffer()
	defer b.free()
	b.str(`{"requests":[`)
	for i := range jobs {
		if i > 0 {
			b.str(`,`)
		}
		jobs[i].Output = nil
		b.job(&jobs[i])
	}
	b.str(`]}`)
	return b.send(c)
}

// number is a parameter, brought into its bounds.
func number(c echo.Context, name string, standard, low, high int) (int, error) {
	text := c.QueryParam(name)
	if text == "" {
		return standard, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // then n is the nearest
		return 0, protocol.BadRequestError(name + ": not a number")
	}
	return min(max(n, low), high), nil
}

// sendValue answers with a value for which no speed is needed.
func sendValue(c echo.Context, v any) error {
	b := buffer()
	defer b.free()
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false) // an output is shown as it came
	if err := enc.Encode(v); err != nil {
		return err
	}
	return b.send(c)
}

// Write implements io.Writer.
func (j *jsonBuffer) Write(p []byte) (int, error) { j.raw(p); return len(p), nil }
