package gateway

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"runpodctl-worker/internal/protocol"
)

// job is one that the worker has given to the program.
type job struct {
	protocol.Job
	sink protocol.Sink
	done chan struct{} // closed with out and err set

	out protocol.Outcome
	err error

	// What follows is guarded by the gateway.
	taken   bool      // the program has it …
	since   time.Time // … from then on
	stopped error     // why the worker wants it back
	told    bool      // and the program has been told so
	lost    bool      // an item of its stream was not handed on

	reports sync.Mutex // keeps reports in order, and none after the end
	over    bool
}

// Handle puts a job in line and waits for its end. A job that the program has taken is over when the program says so, in
// whatever way; see Stops, Take and vigil.
func (g *Gateway) Handle(ctx context.Context, in protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
	j := &job{Job: in, sink: sink, done: make(chan struct{})}
	if err := g.enter(j); err != nil {
		return protocol.Outcome{}, err
	}
	select {
	case <-j.done:
	case <-ctx.Done():
		g.cancel(j, context.Cause(ctx))
		<-j.done
	}
	j.reports.Lock()
	j.over = true
	j.reports.Unlock()
	return j.out, j.err
}

func (g *Gateway) enter(j *job) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errUntaken
	}
	if g.jobs[j.ID] != nil {
		return errors.New("the program works on a job of this id already")
	}
	g.jobs[j.ID] = j
	g.line(len(g.queue), j)
	return nil
}

// line puts jobs into the queue. The lock is held.
func (g *Gateway) line(at int, jobs ...*job) {
	g.queue = slices.Insert(g.queue, at, jobs...)
	close(g.more)
	g.more = make(chan struct{})
}

// cancel takes a job back: at once where the program has not got it yet.
func (g *Gateway) cancel(j *job, why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.jobs[j.ID] != j {
		return // it has ended meanwhile
	}
	j.stopped = why
	if !j.taken {
		g.giveUp(j, why)
		return
	}
	g.stops.post(j)
}

// giveUp ends a job without a result. That the worker did not want it any more goes before every other reason. The lock
// is held.
func (g *Gateway) giveUp(j *job, why error) {
	if j.stopped != nil {
		why = j.stopped
	}
	g.finish(j, protocol.Outcome{}, why)
}

// finish ends a job. The lock is held.
func (g *Gateway) finish(j *job, out protocol.Outcome, err error) {
	delete(g.jobs, j.ID)
	g.queue = slices.DeleteFunc(g.queue, func(other *job) bool { return other == j })
	g.stops.retract(j)
	j.out, j.err = out, err
	close(j.done)
	g.update()
}

// taken are the jobs that the program has. The lock is held.
func (g *Gateway) taken() []*job {
	var taken []*job
	for _, j := range g.jobs {
		if j.taken {
			taken = append(taken, j)
		}
	}
	return taken
}

// find returns a job that the program has.
func (g *Gateway) find(id string) *job {
	g.mu.Lock()
	defer g.mu.Unlock()
	if j := g.jobs[id]; j != nil && j.taken {
		return j
	}
	return nil
}
