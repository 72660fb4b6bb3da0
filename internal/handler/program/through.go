package program

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"runpodctl-worker/internal/handler/program/gateway"
	"runpodctl-worker/internal/protocol"
)

// UnhealthyError is the fault of a program that left because one of its own fitness checks failed.
type UnhealthyError = gateway.UnhealthyError

// claimForGateway makes the gateway the program's way in, unless the shim is.
func (p *Program) claimForGateway() bool {
	p.mu.Lock()
	if p.claimed {
		p.mu.Unlock()
		return false
	}
	p.claimed, p.through = true, true
	p.mu.Unlock()
	p.gateway.Serve()
	return true
}

func (p *Program) servedByGateway() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.through
}

// throughGateway is what can be said of a program that asks for its jobs itself. How many it wants at a time, it says
// with every call.
func (p *Program) throughGateway() protocol.Ready {
	return protocol.Ready{Name: commandName(p.opts.Args) + " (with an SDK of its own)", Modifier: true}
}

// commandName is a command in few words: of each path the last part, of a script its begin.
func commandName(args []string) string {
	var words []string
	for _, arg := range args {
		if filepath.IsAbs(arg) {
			arg = filepath.Base(arg)
		}
		words = append(words, strings.Fields(arg)...)
	}
	return fmt.Sprintf("%.80s", strings.Join(words, " "))
}

// handleThroughGateway runs a job that the program has to take.
func (p *Program) handleThroughGateway(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
	out, err := p.gateway.Handle(ctx, job, sink)
	if !errors.Is(err, gateway.ErrClosed) {
		return p.spool.outcome(out), err
	}
	p.missOnce.Do(func() { close(p.missed) })
	<-p.exited
	if errors.Is(err, protocol.ErrNotBegun) {
		return out, fmt.Errorf("%w: %w", protocol.ErrNotBegun, p.Err())
	}
	return out, withLastLines(p.Err())
}
