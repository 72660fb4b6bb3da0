package emulator

import (
	"context"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"runpodctl-worker/internal/emulator/store"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/server"
)

// openaiMethods are those that clients of the OpenAI API use. The job does not say which it was, as
// hosted.
var openaiMethods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// openai turns a call of the OpenAI API into a job, and what the job yields into the answer.
func (ep *endpoint) openai(c echo.Context) error {
	s, streams, err := readOpenAI(c, ep.opts.MaxRunSync)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	s.held = true // what it yields is read bit by bit, and it must be there for the last one
	job, err := ep.enqueue(ctx, syncID(), s, ep.opts.SyncRetention)
	if err != nil {
		return err
	}
	defer func() {
		_ = ep.store.Release(context.WithoutCancel(ctx), job.ID) // it may be gone: all the better
	}()
	// The writer without echo's wrapper, as for workers: it flushes what it is told to.
	return ep.relay(ctx, job.ID, &openaiAnswer{w: c.Response().Writer, streams: streams})
}

// readOpenAI makes a submission of a call, and tells whether its answer is to be a stream.
func readOpenAI(c echo.Context, limit int64) (s *submission, streams bool, err error) {
	body, err := server.ReadBody(c.Request(), limit)
	if err != nil {
		return nil, false, err
	}
	var head struct {
		Stream bool `json:"stream"`
	}
	route, err := url.PathUnescape(c.Param("*")) // echo leaves it as it is where a / is escaped
	if err != nil {
		return nil, false, protocol.BadRequestError("path: " + err.Error())
	}
	input := append([]byte(`{"openai_route":`), protocol.Quote("/v1/"+route)...)
	if len(body) > 0 {
		if err := server.Decode(body, &head); err != nil {
			return nil, false, err
		}
		input = append(append(input, `,"openai_input":`...), body...)
	}
	return &submission{Input: append(input, '}')}, head.Stream, nil
}

// relay passes on what a job yields, live, until the answer is complete. Nobody but the caller knows
// the job, so it is cancelled when the caller goes, or gets no answer.
func (ep *endpoint) relay(ctx context.Context, id string, a *openaiAnswer) error {
	for {
		if _, err := ep.store.Wait(ctx, id, store.EndedOrChunk, ep.opts.OpenAIHold); err != nil {
			return a.broken(err)
		}
		if ctx.Err() != nil {
			ep.abandon(ctx, id)
			return ctx.Err()
		}
		job, chunks, err := ep.store.DrainChunks(ctx, id)
		if err != nil {
			return a.broken(err)
		}
		for _, chunk := range chunks {
			if a.item(chunk); !a.streams {
				return nil
			}
		}
		if job.Status.Terminal() {
			a.end(&job)
			return nil
		}
		if len(chunks) == 0 {
			ep.abandon(ctx, id)
			if ep.closing() {
				a.fail(http.StatusServiceUnavailable, "the server is stopping; the job has not ended")
				return nil
			}
			a.fail(http.StatusGatewayTimeout, "no word from the job for "+ep.opts.OpenAIHold.String())
			return nil
		}
	}
}

// abandon cancels a job whose answer nobody will read.
func (ep *endpoint) abandon(ctx context.Context, id string) {
	_, _ = ep.cancelJob(context.WithoutCancel(ctx), id) // it may have ended, or be gone: all the better
}
