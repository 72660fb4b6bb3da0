package program

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/handler/program/gateway"
	"runpodctl-worker/internal/protocol"
)

// window is how many items of a stream may be on their way from the generator to the sink.
const window = 8

// refill is how many items are taken before the generator gets credit for as many more: each time costs both sides a
// system call, and the Python process a change of threads.
const refill = window / 2

// greetTime is how long a connection may take to say what it is.
const greetTime = 5 * time.Second

// hello is how a program introduces itself when it calls start().
type hello struct {
	Name      string   `json:"name"`
	Python    string   `json:"python"`
	Kind      string   `json:"kind"`
	Modifier  bool     `json:"modifier"`
	Aggregate bool     `json:"aggregate"`
	Checks    []string `json:"checks"`

	Environ map[string]string `json:"environ"` // the variables of the fitness checks, as they are by now
}

func (p *Program) readyFor(h hello) protocol.Ready {
	return protocol.Ready{
		Name:     fmt.Sprintf("%s (python %s, %s)", h.Name, h.Python, h.Kind),
		Modifier: h.Modifier, Aggregate: h.Aggregate || p.opts.Aggregate, Checks: h.Checks,
		Environ: p.withoutOurs(h.Environ),
	}
}

// withoutOurs undoes what the gateway put into the program's environment for an SDK.
func (p *Program) withoutOurs(environ map[string]string) map[string]string {
	if p.gateway == nil {
		return environ
	}
	for _, name := range []string{config.SkipSystem, config.SkipGPU} {
		switch before := lookup(p.env, name); {
		case environ[name] != gateway.Skip: // the program has set it itself
		case before == "":
			delete(environ, name)
		default:
			environ[name] = before
		}
	}
	return environ
}

// welcome is the answer to the first hello.
type welcome struct {
	Window      int    `json:"window"`
	SyncThreads int    `json:"sync_threads"`
	Aggregate   bool   `json:"aggregate"`
	Debug       bool   `json:"debug"`
	LogLevel    string `json:"log_level"`
	ErrorLogs   int    `json:"error_logs"`
	NameJobs    bool   `json:"name_jobs"`
}

// greet serves a connection by what its first frame says that it is.
func (p *Program) greet(c *conn) {
	_ = c.SetReadDeadline(time.Now().Add(greetTime)) // fails only on a closed connection, as the read will
	f, err := c.read()
	if err != nil {
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	switch f.kind {
	case kindHello:
		p.serveControl(c, f)
	case kindData:
		p.serveData(c)
	case kindProgressOf:
		if p.progressOf(f) {
			_ = c.send(kindAck, 0, nil) // whoever is gone needs no answer
		}
	case kindLocal:
		p.mu.Lock()
		p.local = true
		p.mu.Unlock()
		_ = c.send(kindAck, 0, nil)
	default:
		p.log.Debug("A connection began with an unknown frame.", "type", f.kind)
	}
}

// serveControl answers a hello. The first one below the program wins.
func (p *Program) serveControl(c *conn, f frame) {
	var h hello
	err := json.Unmarshal(f.payload, &h)
	p.mu.Lock()
	first := err == nil && !p.claimed && !p.closing
	if first {
		p.claimed, p.control, p.greeted, p.pid = true, c, h, int(f.number)
		p.reading.Add(1)
	}
	p.mu.Unlock()
	if !first {
		_ = c.send(kindRefused, 0, nil) // if it is gone, it is refused as well
		return
	}
	defer p.reading.Done()
	p.async.Store(strings.HasPrefix(h.Kind, "async"))
	answer, err := json.Marshal(welcome{
		Window: window, SyncThreads: max(1, p.opts.SyncThreads),
		Aggregate: p.opts.Aggregate, Debug: p.opts.Debugger, LogLevel: p.opts.LogLevel,
		ErrorLogs: p.opts.ErrorLogs, NameJobs: p.opts.NameJobs,
	})
	if err != nil {
		p.fail(err)
		return
	}
	_ = c.send(kindWelcome, 0, answer) // if it is gone, the read will say so
	p.readAll(c)
}

// serveData takes the second connection of the program that said hello.
func (p *Program) serveData(c *conn) {
	p.mu.Lock()
	first := p.control != nil && p.data == nil && !p.closing
	if first {
		c.s = p.spool
		p.data = c
		p.reading.Add(1)
		p.ready <- p.greeted
	}
	p.mu.Unlock()
	if first {
		defer p.reading.Done()
		p.readAll(c)
	}
}
