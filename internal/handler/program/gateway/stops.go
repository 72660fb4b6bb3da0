package gateway

import (
	"context"
	"slices"
)

// stops carries to the program the jobs that the worker wants back. It is guarded by the gateway.
type stops struct {
	pending []*job      // nobody has asked yet
	polls   []chan *job // calls that wait for one; each is answered once
}

// post tells every call that waits: the program may be several processes of one name, and who does not have the job
// ignores it.
func (s *stops) post(j *job) {
	if len(s.polls) == 0 {
		s.pending = append(s.pending, j)
		return
	}
	j.told = true
	for _, poll := range s.polls {
		poll <- j
	}
	s.polls = nil
}

func (s *stops) retract(j *job) {
	s.pending = slices.DeleteFunc(s.pending, func(other *job) bool { return other == j })
}

// Stops implements server.Backend. A program that asks again has done as it was told before: it has left those jobs, and
// need not report on them. So does the official SDK.
func (g *Gateway) Stops(ctx context.Context, _ string) ([]string, error) {
	defer g.begin(ctx)()
	g.obeyed()
	if ids := g.toStop(); len(ids) > 0 {
		return ids, nil
	}
	poll := g.poll()
	defer g.pollNoMore(poll)
	hold, cancel := g.hold(ctx, g.opts.StopHold)
	defer cancel()
	select {
	case j := <-poll:
		return g.passOn(ctx, j), nil
	case <-hold.Done():
		return nil, nil
	}
}

func (g *Gateway) obeyed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, j := range g.jobs {
		if j.told {
			g.giveUp(j, j.stopped)
		}
	}
}

func (g *Gateway) toStop() (ids []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, j := range g.stops.pending {
		j.told = true
		ids = append(ids, j.ID)
	}
	g.stops.pending = nil
	return ids
}

func (g *Gateway) poll() chan *job {
	g.mu.Lock()
	defer g.mu.Unlock()
	poll := make(chan *job, 1)
	g.stops.polls = append(g.stops.polls, poll)
	return poll
}

func (g *Gateway) pollNoMore(poll chan *job) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stops.polls = slices.DeleteFunc(g.stops.polls, func(other chan *job) bool { return other == poll })
	select {
	case j := <-poll: // the call ended just then
		g.tellLater(j)
	default:
	}
}

// passOn is the id for the caller, unless he has gone.
func (g *Gateway) passOn(ctx context.Context, j *job) []string {
	if ctx.Err() == nil {
		return []string{j.ID}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tellLater(j)
	return nil
}

// tellLater keeps a job for the next call. The lock is held.
func (g *Gateway) tellLater(j *job) {
	if g.jobs[j.ID] == j && !slices.Contains(g.stops.pending, j) {
		j.told = false
		g.stops.pending = append(g.stops.pending, j)
	}
}
