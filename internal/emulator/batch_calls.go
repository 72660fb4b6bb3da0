package emulator

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/server"
)

// withBatch finds the batch that a path names.
func withBatch(call func(*endpoint, echo.Context, *batch) error) func(*endpoint, echo.Context) error {
	return func(ep *endpoint, c echo.Context) error {
		b := ep.batches.find(c.Param("batch"))
		if b == nil {
			server.WriteProblem(c.Response(), http.StatusNotFound, "batch not found")
			return nil
		}
		return call(ep, c, b)
	}
}

func (ep *endpoint) createBatch(c echo.Context) error {
	var submissions []*submission
	if err := ep.readBatchBody(c, &submissions); err != nil {
		return err
	}
	b := newBatch(ep.opts.Now())
	if err := ep.addRequests(b, submissions); err != nil {
		return err
	}
	for _, other := range ep.batches.newest() { // those that purges have emptied are not active
		if _, err := ep.running(c.Request().Context(), other); err != nil {
			return err
		}
	}
	if err := ep.batches.add(b); err != nil {
		return err
	}
	return sendValue(c, batchState{b.id, batchDraft})
}

func (ep *endpoint) listBatches(c echo.Context) error {
	views := []batchView{}
	for _, b := range ep.batches.newest() {
		v, err := ep.view(c.Request().Context(), b)
		if err != nil {
			return err
		}
		views = append(views, v)
	}
	return sendValue(c, map[string]any{"batches": views})
}

func (ep *endpoint) readBatch(c echo.Context, b *batch) error {
	v, err := ep.view(c.Request().Context(), b)
	if err != nil {
		return err
	}
	return sendValue(c, v)
}

func (ep *endpoint) renameBatch(c echo.Context, b *batch) error {
	var body struct {
		Name string `json:"name"`
	}
	if err := ep.readBatchBody(c, &body); err != nil {
		return err
	}
	ep.batches.rename(b, body.Name)
	return ep.readBatch(c, b)
}

func (ep *endpoint) addBatchRequests(c echo.Context, b *batch) error {
	var body struct {
		Requests []*submission `json:"requests"`
	}
	if err := ep.readBatchBody(c, &body); err != nil {
		return err
	}
	if err := ep.addRequests(b, body.Requests); err != nil {
		return err
	}
	return ep.sendBatchState(c, b)
}

func (ep *endpoint) deleteBatchRequest(c echo.Context, b *batch) error {
	err := ep.batches.draft(b, func() error {
		i := slices.IndexFunc(b.requests, func(r *batchRequest) bool { return r.id == c.Param("request") })
		if i < 0 {
			return protocol.ErrUnknownJob
		}
		b.requests = slices.Delete(b.requests, i, i+1)
		return nil
	})
	if err != nil {
		return err
	}
	return ep.sendBatchState(c, b)
}

func (ep *endpoint) finalizeBatch(c echo.Context, b *batch) error {
	if err := ep.startBatch(c.Request().Context(), b); err != nil {
		return err
	}
	return ep.sendBatchState(c, b)
}

func (ep *endpoint) cancelBatch(c echo.Context, b *batch) error {
	if err := ep.dropBatch(c.Request().Context(), b); err != nil {
		return err
	}
	return ep.sendBatchState(c, b)
}

func (ep *endpoint) sendBatchState(c echo.Context, b *batch) error {
	v, err := ep.view(c.Request().Context(), b)
	if err != nil {
		return err
	}
	return sendValue(c, batchState{v.ID, v.Status})
}

func (ep *endpoint) readBatchBody(c echo.Context, into any) error {
	body, err := server.ReadBody(c.Request(), ep.opts.MaxRun)
	if err != nil {
		return err
	}
	return server.Decode(body, into)
}
