package emulator

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"runpodctl-worker/internal/emulator/store"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/server"
)

// jsonBuffer builds an answer by hand: outputs and chunks are JSON already and must not be encoded
// again, and what is left is a handful of plain fields.
type jsonBuffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return new(jsonBuffer) }}

// keepBuffer is the largest buffer worth keeping: one big output must not stay in memory for good.
const keepBuffer = 64 << 10

func buffer() *jsonBuffer { return buffers.Get().(*jsonBuffer) }

func (j *jsonBuffer) free() {
	if cap(j.b) <= keepBuffer {
		j.b = j.b[:0]
		buffers.Put(j)
	}
}

func (j *jsonBuffer) send(c echo.Context) error {
	server.WriteJSON(c.Response(), http.StatusOK, j.b)
	return nil
}

func sendJob(c echo.Context, job *store.Job) error {
	b := buffer()
	defer b.free()
	b.job(job)
	return b.send(c)
}

func (j *jsonBuffer) str(s string) *jsonBuffer { j.b = append(j.b, s...); return j }
func (j *jsonBuffer) raw(b []byte) *jsonBuffer { j.b = append(j.b, b...); return j }
func (j *jsonBuffer) num(n int64) *jsonBuffer  { j.b = strconv.AppendInt(j.b, n, 10); return j }

// state is the short form of a job. Ids and states are plain words, safe without escaping.
func (j *jsonBuffer) state(id string, status protocol.Status) {
	j.str(`{"id":"`).str(id).str(`","status":"`).str(string(status)).str(`"}`)
}

// job is a job as clients read it: keys sorted, what is zero or absent left out.
func (j *jsonBuffer) job(job *store.Job) {
	j.fields(job, nil)
	if job.Worker != "" {
		j.str(`,"workerId":`).raw(protocol.Quote(job.Worker))
	}
	j.str(`}`)
}

// news is a job as its webhook reads it. It names the input, and no worker.
func (j *jsonBuffer) news(job *store.Job, input json.RawMessage) {
	j.fields(job, input)
	j.str(`,"webhook":`).raw(protocol.Quote(job.Webhook)).str(`}`)
}

// fields are those that both forms share, and where they sort in, the input.
func (j *jsonBuffer) fields(job *store.Job, input json.RawMessage) {
	j.str(`{`)
	if !job.Started.IsZero() {
		j.str(`"delayTime":`).num(millis(job.Started.Sub(job.Created))).str(`,`)
	}
	if job.Error != "" {
		j.str(`"error":`).raw(protocol.Quote(job.Error)).str(`,`)
	}
	if job.Status.Terminal() && !job.Started.IsZero() {
		j.str(`"executionTime":`).num(millis(job.Ended.Sub(job.Started))).str(`,`)
	}
	j.str(`"id":"`).str(job.ID).str(`",`)
	if input != nil {
		j.str(`"input":`).raw(input).str(`,`)
	}
	if job.Output != nil {
		j.str(`"output":`).raw(job.Output).str(`,`)
	}
	if job.Retries > 0 {
		j.str(`"retries":`).num(int64(job.Retries)).str(`,`)
	}
	j.str(`"status":"`).str(string(job.Status)).str(`"`)
}

func (j *jsonBuffer) stream(status protocol.Status, chunks []json.RawMessage) {
	j.str(`{"status":"`).str(string(status)).str(`","stream":[`)
	for i, chunk := range chunks {
		if i > 0 {
			j.str(`,`)
		}
		j.str(`{"output":`).raw(chunk).str(`}`)
	}
	j.str(`]}`)
}

// millis rounds up, so that a time that was measured is never 0: a zero is left out, and clients that
// are used to a network's delays would miss the key.
func millis(d time.Duration) int64 {
	return max(1, int64((d+time.Millisecond-1)/time.Millisecond))
}
