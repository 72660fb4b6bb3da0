package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"runpodctl-worker/internal/protocol"
)

// call is one job in the program.
type call struct {
	id     string
	sink   protocol.Sink
	chunks chan json.RawMessage // never full: the program sends only against credit
	done   chan struct{}        // closed with out, cancelled set, and after the last chunk

	out       protocol.Outcome
	cancelled bool

	mu    sync.Mutex // between progress and the end: nothing is reported after it
	ended bool
}

func (c *call) progress(value json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.sink.Progress(value)
	}
}

func (c *call) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// Handle runs one job in the program. An outcome that came although ctx was cancelled is returned
// all the same if it is whole: the handler did finish.
func (p *Program) Handle(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
	if p.opts.Line != nil {
		defer p.inside.enter(job)()
	}
	handle := p.handle
	if p.servedByGateway() {
		handle = p.handleThroughGateway
	}
	out, err := handle(ctx, job, sink)
	out.Error = protocol.ShortError(p.opts.Secrets.String(out.Error))
	return out, err
}

// handle runs it through the shim.
func (p *Program) handle(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
	c := &call{id: job.ID, sink: sink, chunks: make(chan json.RawMessage, window), done: make(chan struct{})}
	number, data, err := p.enter(c)
	if err != nil {
		if p.Err() != nil {
			<-p.exited
			err = fmt.Errorf("%w: %w", protocol.ErrNotBegun, err)
		}
		return protocol.Outcome{}, err
	}
	defer p.leave(number, c)
	if err := ctx.Err(); err != nil {
		return protocol.Outcome{}, context.Cause(ctx)
	}
	if err := data.send(kindJob, number, job.Raw); err != nil {
		p.gone() // how it ended will be the error
	}
	return p.follow(ctx, number, c)
}

// follow hands on what the job yields until it has ended.
func (p *Program) follow(ctx context.Context, number uint32, c *call) (protocol.Outcome, error) {
	var stopped error // why the job was told to stop
	lost := false     // an item was not handed on, so the stream is not whole
	taken := 0        // items that there was no credit given for yet
	stop := func(why error) {
		if stopped == nil {
			stopped = why
			p.order(kindCancel, number, nil)
		}
	}
	cancelled := ctx.Done()
	take := func(item json.RawMessage) {
		if stopped == nil {
			if err := c.sink.Chunk(item); err != nil {
				lost = true
				stop(err)
			}
		} else {
			lost = true
		}
		if taken++; taken == refill {
			p.order(kindCredit, number, []byte(strconv.Itoa(refill)))
			taken = 0
		}
	}
	for {
		select {
		case item := <-c.chunks:
			take(item)
		case <-cancelled:
			cancelled = nil
			stop(context.Cause(ctx))
		case <-c.done:
			for len(c.chunks) > 0 {
				take(<-c.chunks)
			}
			if stopped != nil && (c.cancelled || lost) {
				c.out.Drop()
				return protocol.Outcome{}, stopped
			}
			if c.cancelled { // by the end of the program, which another job may have brought about
				c.out.Drop()
				<-p.exited
				return protocol.Outcome{}, withLastLines(p.Err())
			}
			return c.out, nil
		case <-p.exited:
			select {
			case <-c.done: // the end of the job came before the end of the program
				continue
			default:
				return protocol.Outcome{}, withLastLines(p.Err())
			}
		}
	}
}

// enter gives a job its number.
func (p *Program) enter(c *call) (uint32, *conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.data == nil {
		return 0, nil, errors.New("the program has not been started")
	}
	if p.err != nil {
		return 0, nil, p.err
	}
	p.last++
	p.calls[p.last], p.byID[c.id] = c, c
	return p.last, p.data, nil
}

func (p *Program) leave(number uint32, c *call) {
	c.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, number)
	if p.byID[c.id] == c {
		delete(p.byID, c.id)
	}
}
