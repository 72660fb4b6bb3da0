package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/handler/program"
	"runpodctl-worker/internal/protocol"
)

// leaveTime is what the handler's program gets to end by itself when the doctor leaves.
const leaveTime = 300 * time.Millisecond

// handlerID is the id of the check that starts the handler.
const handlerID = "handler"

// doctorHandler starts the user's program for the doctor and runs the checks that it registered. A check that hangs
// or ends the process costs its own row: the next one gets a fresh process.
type doctorHandler struct {
	name    string
	make    func(output io.Writer) *program.Program
	loading time.Duration // how long it may load; 0: without limit
	limit   time.Duration // of one registered check
	picked  checks.Filter // of the registered checks, whose ids are known only when it has started

	mu      sync.Mutex // held while the program is started, asked or stopped
	program *program.Program
	broken  bool // it cannot be asked any more
	output  printed
}

// check is the row of the program's own start; what it registered comes to light with it.
func (h *doctorHandler) check() checks.Check {
	limit := h.loading
	if limit == 0 {
		limit = 24 * time.Hour
	}
	return checks.Check{
		ID: handlerID, Name: handlerID, Title: "Handler starts", Phase: checks.Start, Lane: laneOwn, Vital: true,
		Limit: limit,
		Run:   h.start,
	}
}

func (h *doctorHandler) start(ctx context.Context) checks.Result {
	h.mu.Lock()
	defer h.mu.Unlock()
	began := time.Now()
	ready, err := h.restart(ctx)
	took := time.Since(began)
	if err != nil {
		return h.notStarted(ctx, err)
	}
	list, err := pickRegistered(h.picked, registeredChecks(ready.Checks, h.loading+2*h.limit, h.ask))
	if err != nil {
		return checks.Result{
			Status: checks.Error, Summary: err.Error(), Output: h.output.take(),
			Remedy: "Correct --only or --skip: a registered check is called as its row says.",
		}
	}
	return checks.Result{
		Status: checks.Pass, Summary: "ready for jobs: " + ready.Name, Output: h.output.take(), Found: list,
		Facts: []checks.Fact{
			{Name: "command", Value: h.name},
			{Name: "load_seconds", Value: took.Seconds(), Text: took.Round(10 * time.Millisecond).String()},
			{Name: "registered_checks", Value: len(list)},
		},
	}
}

// notStarted says why the program did not come as far as start(), and what to do about it.
func (h *doctorHandler) notStarted(ctx context.Context, err error) checks.Result {
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return checks.Skipped("interrupted")
	}
	result := checks.Result{
		Status: checks.Fail, Summary: err.Error(), Output: h.output.take(),
		Remedy: "Start it by hand and look at what it says: " + h.name,
	}
	exit, ended := errors.AsType[*program.ExitError](err)
	switch {
	case ended && exit.Early && exit.State.Code == 0:
		result.Summary = "the program ended before it called runpod.serverless.start()"
		result.Remedy = `End the file with runpod.serverless.start({"handler": handler}), or name the function, as in --handler handler.py:handler.`
	case ctx.Err() != nil:
		result.Kind, result.Summary = "TimeoutError", "not ready for jobs: "+context.Cause(ctx).Error()
		result.Remedy = "A model that takes longer to load needs a larger --" + flagReady + ". " + err.Error()
	}
	return result
}

// restart starts the program anew. The lock is held.
func (h *doctorHandler) restart(ctx context.Context) (protocol.Ready, error) {
	h.end(leaveTime)
	h.output.take()
	h.program, h.broken = h.make(&h.output), false
	return h.program.Start(ctx)
}

// ask runs one registered check, in a fresh process where the one before it spoilt the last.
func (h *doctorHandler) ask(ctx context.Context, index int) checks.Result {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.program == nil || h.broken {
		if _, err := h.restart(ctx); err != nil {
			h.broken = true
			return h.notStarted(ctx, err)
		}
	}
	h.output.take()
	result := askChecker(ctx, h.program, index, h.limit)
	select {
	case <-h.program.Exited():
		h.broken = true
	default:
		h.broken = result.Kind == "TimeoutError" || result.Status == checks.Skip
	}
	h.output.settle()
	if said := h.output.take(); !strings.Contains(said, result.Output) { // last lines are what it printed
		result.Output = strings.TrimSpace(strings.TrimSpace(result.Output) + "\n" + said)
	} else {
		result.Output = said
	}
	return result
}

// close ends the program.
func (h *doctorHandler) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end(leaveTime)
}

func (h *doctorHandler) end(grace time.Duration) {
	if h.program == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	_ = h.program.Stop(ctx) // what survives a KILL cannot be helped
	h.program = nil
}

// What a program printed before it answered may still be in its pipe when the answer is here.
const (
	settleStep = 20 * time.Millisecond
	settleTime = 200 * time.Millisecond
)

// maxPrinted is how much of a program's output is kept for its row: the end of it.
const maxPrinted = 8 << 10

// printed keeps the end of what a program prints.
type printed struct {
	mu   sync.Mutex
	tail []byte
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tail = append(p.tail, b...)
	if len(p.tail) > 2*maxPrinted {
		p.tail = append(p.tail[:0], p.tail[len(p.tail)-maxPrinted:]...)
	}
	return len(b), nil
}

// settle waits until nothing more arrives.
func (p *printed) settle() {
	before := -1
	for end := time.Now().Add(settleTime); time.Now().Before(end); time.Sleep(settleStep) {
		p.mu.Lock()
		n := len(p.tail)
		p.mu.Unlock()
		if n == before {
			return
		}
		before = n
	}
}

// take returns what was printed since the last take.
func (p *printed) take() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.tail
	if len(text) > maxPrinted {
		text = text[len(text)-maxPrinted:]
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			text = text[i+1:]
		}
	}
	p.tail = nil
	return strings.TrimSpace(strings.ToValidUTF8(string(text), "�"))
}
