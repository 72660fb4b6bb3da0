package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/server"
)

var _ server.Backend = (*Gateway)(nil)

const (
	// maxLimit is the most that a program can ask for, however it does.
	maxLimit = 1024
	// gatherTime is how long a call for several jobs waits for the others once it has got one.
	gatherTime = 5 * time.Millisecond
	// beginTime is how long the official SDK, in some of its versions, may have a job before it says so.
	beginTime = 3 * time.Second
	// releasedHold keeps a program that ignores the end from asking without a pause.
	releasedHold = 100 * time.Millisecond
)

// errForgotten is the end of a job whose taker cannot know of it any more: its process is a new one, or it could not
// deliver the result.
var errForgotten = errors.New("the program took the job and says that it works on nothing, but it has reported no result")

// Limit is how many jobs the program works at: those it has and those it waits for.
func (g *Gateway) Limit() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limit
}

// work computes it. The lock is held.
func (g *Gateway) work() int {
	return min(max(1, len(g.jobs)-len(g.queue)+g.wanted), maxLimit)
}

// Take implements server.Backend.
func (g *Gateway) Take(ctx context.Context, _ string, n int) ([]json.RawMessage, error) {
	defer g.begin(ctx)()
	g.ask(callerOf(ctx), n)
	hold, cancel := g.hold(ctx, g.opts.TakeHold)
	defer cancel()
	for {
		more, waiting := g.ahead()
		if waiting > 0 && waiting < n {
			pause(hold, gatherTime)
		}
		if jobs := g.fetch(ctx, n); len(jobs) > 0 {
			return jobs, nil
		}
		select {
		case <-more:
		case <-hold.Done():
			g.asksNoMore(n)
			return nil, nil
		}
	}
}

// ask notes a call for jobs.
func (g *Gateway) ask(c caller, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.takes++; g.takes > 1 {
		g.vigil.several = true
	}
	g.wanted += n
	if c.official && c.idle && !g.vigil.several {
		g.forget()
	}
	select {
	case <-g.asked:
	default:
		close(g.asked)
	}
	g.update()
}

// forget ends the jobs of a program that works on nothing, as it says. The lock is held.
func (g *Gateway) forget() {
	for _, j := range g.taken() {
		if time.Since(j.since) >= beginTime {
			g.giveUp(j, errForgotten)
		}
	}
}

// asksNoMore notes the end of one.
func (g *Gateway) asksNoMore(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.served(n)
}

// served notes it with the lock held.
func (g *Gateway) served(n int) {
	g.takes--
	g.wanted -= n
	g.update()
}

// ahead tells how many jobs wait, and gives the channel that tells of more.
func (g *Gateway) ahead() (more <-chan struct{}, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.more, len(g.queue)
}

// fetch hands out up to n jobs, which ends the call, or none.
func (g *Gateway) fetch(ctx context.Context, n int) []json.RawMessage {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 || ctx.Err() != nil || g.life.Err() != nil {
		return nil
	}
	objects := make([]json.RawMessage, min(n, len(g.queue)))
	for i := range objects {
		g.queue[i].taken, g.queue[i].since = true, time.Now()
		objects[i] = g.queue[i].Raw
	}
	g.queue = slices.Delete(g.queue, 0, len(objects))
	g.served(n)
	return objects
}

// Untake implements server.Backend.
func (g *Gateway) Untake(_ string, objects []json.RawMessage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var back []*job
	for _, object := range objects {
		parsed, err := protocol.ParseJob(object)
		j := g.jobs[parsed.ID]
		if err != nil || j == nil || !j.taken {
			continue // it has ended meanwhile
		}
		j.taken = false
		if j.stopped != nil {
			g.giveUp(j, j.stopped)
			continue
		}
		back = append(back, j)
	}
	g.line(0, back...)
	g.update()
}

// hold is a context for a call that is held: it ends with the call, after its time, or when all are released.
func (g *Gateway) hold(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if g.life.Err() != nil {
		return context.WithTimeout(ctx, releasedHold)
	}
	held, cancel := context.WithTimeout(ctx, d)
	stop := context.AfterFunc(g.life, cancel)
	return held, func() { stop(); cancel() }
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
