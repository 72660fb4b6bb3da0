package gpu

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"time"

	"runpodctl-worker/internal/checks/gpu/wire"
)

// watcher is the NVML helper that waits for events while others test.
type watcher struct {
	stdin  *os.File
	cancel context.CancelFunc
	done   chan struct{} // closed when the helper has ended
	lines  []wire.Line   // valid then
}

// startWatch returns once the events are on, or cannot be.
func (d *Driver) startWatch(ctx context.Context, s *survey) *watcher {
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{cancel: cancel, done: make(chan struct{})}
	theirs, ours, err := os.Pipe()
	if err != nil {
		close(w.done)
		return w
	}
	w.stdin = ours
	on := make(chan struct{})
	var once sync.Once
	go func() {
		defer close(w.done)
		defer theirs.Close()                      //nolint:errcheck // the reading end of a pipe
		w.lines, _ = d.helpers.ask(ctx, question{ // no events are no sickness
			helper: NVMLHelper, args: []string{"watch"}, environ: s.environ, stdin: theirs,
			seen: func(l wire.Line) {
				if l.Step == wire.NVMLWatch && l.State != wire.StateBegin {
					once.Do(func() { close(on) })
				}
			},
		})
	}()
	select {
	case <-on:
	case <-w.done:
	}
	return w
}

// end has the helper tell what happened, and waits for its end.
func (w *watcher) end() []wire.Event {
	if w.stdin != nil {
		_ = w.stdin.Close() // that is the sign
	}
	select {
	case <-w.done:
	case <-time.After(exitTime):
	}
	w.cancel()
	<-w.done
	var events []wire.Event
	for _, line := range w.lines {
		var e wire.Event
		if line.Step == wire.NVMLEvent && json.Unmarshal(line.Data, &e) == nil {
			events = append(events, e)
		}
	}
	return events
}
