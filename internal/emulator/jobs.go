package emulator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/labstack/echo/v4"

	"runpodctl-worker/internal/emulator/store"
	"runpodctl-worker/internal/protocol"
)

// status may also say, with ?ttl, how much longer the job is to exist.
func (ep *endpoint) status(c echo.Context) error {
	if c.Request().URL.RawQuery != "" && c.QueryParam("ttl") != "" {
		return ep.setTTL(c)
	}
	job, err := ep.store.Get(c.Request().Context(), c.Param("job"))
	if err != nil {
		return err
	}
	return sendJob(c, &job)
}

func (ep *endpoint) setTTL(c echo.Context) error {
	most := ep.opts.MaxPolicy.Milliseconds()
	ms, err := number(c, "ttl", 0, 0, math.MaxInt)
	if err != nil {
		return err
	}
	if ms < 1 || int64(ms) > most {
		return protocol.BadRequestError(fmt.Sprintf("ttl: must be between 1 and %d milliseconds", most))
	}
	job, err := ep.store.SetTTL(c.Request().Context(), c.Param("job"), time.Duration(ms)*time.Millisecond)
	if err != nil {
		return err
	}
	return sendJob(c, &job)
}

func (ep *endpoint) statusSync(c echo.Context) error {
	wait, err := ep.wait(c, ep.opts.SyncHold)
	if err != nil {
		return err
	}
	job, err := ep.store.Wait(c.Request().Context(), c.Param("job"), store.Ended, wait)
	if err != nil {
		return err
	}
	return sendJob(c, &job)
}

// stream answers with the chunks that came since the last call, and waits for one when there are none.
func (ep *endpoint) stream(c echo.Context) error {
	wait, err := ep.wait(c, ep.opts.StreamHold)
	if err != nil {
		return err
	}
	ctx, id := c.Request().Context(), c.Param("job")
	if _, err = ep.store.Wait(ctx, id, store.EndedOrChunk, wait); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return nil // a chunk is read once: keep it for someone who is there
	}
	job, chunks, err := ep.store.DrainChunks(ctx, id)
	if err != nil {
		return err
	}
	b := buffer()
	defer b.free()
	b.stream(job.Status, chunks)
	return b.send(c)
}

// cancel ends a job in any live state. One that has ended already keeps its state, which is the answer.
func (ep *endpoint) cancel(c echo.Context) error {
	job, err := ep.cancelJob(c.Request().Context(), c.Param("job"))
	if err != nil && !errors.Is(err, protocol.ErrJobSettled) {
		return err
	}
	b := buffer()
	defer b.free()
	b.state(job.ID, job.Status)
	return b.send(c)
}

// cancelJob ends a job and tells its worker. The job comes back also with protocol.ErrJobSettled.
func (ep *endpoint) cancelJob(ctx context.Context, id string) (store.Job, error) {
	job, err := ep.finish(ctx, id, "", store.End{Status: protocol.Cancelled})
	if err == nil {
		ep.stop(&job)
	}
	return job, err
}

// retry gives a job that failed a fresh start.
func (ep *endpoint) retry(c echo.Context) error {
	job, err := ep.store.Requeue(c.Request().Context(), c.Param("job"))
	if errors.Is(err, store.ErrNotFailed) {
		return protocol.BadRequestError("job: only FAILED and TIMED_OUT jobs can be retried, this one is " + string(job.Status))
	}
	if err != nil {
		return err
	}
	b := buffer()
	defer b.free()
	b.state(job.ID, job.Status)
	return b.send(c)
}

func (ep *endpoint) purge(c echo.Context) error {
	removed, err := ep.store.Purge(c.Request().Context())
	if err != nil {
		return err
	}
	b := buffer()
	defer b.free()
	b.str(`{"removed":`).num(int64(removed)).str(`,"status":"completed"}`)
	return b.send(c)
}

func (ep *endpoint) health(c echo.Context) error {
	n, err := ep.store.Counts(c.Request().Context())
	if err != nil {
		return err
	}
	w := ep.workers.count(ep.opts.Now().Add(-ep.opts.WorkerSeen), n.Busy)
	b := buffer()
	defer b.free()
	b.str(`{"jobs":{"completed":`).num(int64(n.Completed)).
		str(`,"failed":`).num(int64(n.Failed)).
		str(`,"inProgress":`).num(int64(n.InProgress)).
		str(`,"inQueue":`).num(int64(n.InQueue)).
		str(`,"retried":`).num(int64(n.Retried)).
		str(`},"workers":{"idle":`).num(int64(w.idle)).
		str(`,"initializing":`).num(int64(w.initializing)).
		str(`,"ready":`).num(int64(w.idle)). // hosted, this follows the idle ones
		str(`,"running":`).num(int64(w.running)).
		str(`,"throttled":0,"unhealthy":`).num(int64(w.unhealthy)).
		str(`}}`)
	return b.send(c)
}
