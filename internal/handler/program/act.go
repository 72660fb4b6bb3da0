package program

import (
	"errors"
	"fmt"

	"runpodctl-worker/internal/protocol"
)

// act acts on a frame of the program. An error is a breach of the protocol.
func (p *Program) act(f frame) error {
	if f.kind == kindReply {
		p.answer(f)
		return nil
	}
	if f.kind == kindAsync {
		p.async.Store(true)
		p.resize()
		return nil
	}
	p.mu.Lock()
	c := p.calls[f.number]
	p.mu.Unlock()
	if c == nil && f.kind == kindProgress {
		return nil // late, and harmless
	}
	if c == nil {
		f.drop()
		return fmt.Errorf("a frame of type %d for job number %d, which does not run", f.kind, f.number)
	}
	switch f.kind {
	case kindProgress:
		c.progress(f.payload)
	case kindChunk:
		select {
		case c.chunks <- f.payload:
		default:
			return errors.New("more items than it had credit for")
		}
	case kindDone:
		out, cancelled, err := parseDone(f)
		if err != nil {
			return err
		}
		p.finish(f.number, c, out, cancelled)
	default:
		return fmt.Errorf("an unknown frame type %d", f.kind)
	}
	return nil
}

// finish takes the job out of the table, so that nothing can follow its end, and wakes its Handle.
func (p *Program) finish(number uint32, c *call, out protocol.Outcome, cancelled bool) {
	p.leave(number, c)
	c.out, c.cancelled = out, cancelled
	close(c.done)
}

// progressOf takes the progress that another process below the program reports.
func (p *Program) progressOf(f frame) bool {
	size := int(f.number)
	if size > len(f.payload) {
		return false
	}
	p.mu.Lock()
	c := p.byID[string(f.payload[:size])]
	p.mu.Unlock()
	if c != nil {
		c.progress(f.payload[size:])
	}
	return true
}

// order sends on the control connection. A connection that is gone shows elsewhere.
func (p *Program) order(k kind, number uint32, payload []byte) {
	p.mu.Lock()
	control := p.control
	p.mu.Unlock()
	if control == nil {
		return
	}
	if err := control.send(k, number, payload); err != nil {
		p.log.Debug("The program could not be told.", "type", k, "error", err)
	}
}
