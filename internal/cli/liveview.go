package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	spinnerTick = 120 * time.Millisecond
	clearLine   = "\r\x1b[K"
	maxShown    = 400 // bytes of one item; the whole of it is in the document on stdout
)

var spinnerFrames = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// liveView shows a running job to a person: items and progress as they come and, on a terminal, a spinner
// below whatever else is printed. Everything of the command's that goes to stderr passes through it.
type liveView struct {
	mu      sync.Mutex
	w       io.Writer
	tty     bool
	start   time.Time
	doing   string // what is being waited for
	spinner string // what stands on the last line
	atStart bool   // the last thing written ended its line
	items   int
	last    []byte // the last progress shown

	stop, stopped chan struct{}
}

func newLiveView(w io.Writer, tty bool) *liveView {
	v := &liveView{w: w, tty: tty, start: time.Now(), atStart: true, doing: "starting the handler", stop: make(chan struct{}), stopped: make(chan struct{})}
	go v.spin()
	return v
}

// Close takes the spinner off the screen.
func (v *liveView) Close() {
	close(v.stop)
	<-v.stopped
}

func (v *liveView) spin() {
	defer close(v.stopped)
	if !v.tty {
		<-v.stop
		return
	}
	tick := time.NewTicker(spinnerTick)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-v.stop:
			v.mu.Lock()
			v.erase()
			v.mu.Unlock()
			return
		case <-tick.C:
			v.mu.Lock()
			if v.atStart { // never into the middle of somebody's progress bar
				v.spinner = fmt.Sprintf("%c %s, %.1f s", spinnerFrames[n%len(spinnerFrames)], v.doing, time.Since(v.start).Seconds())
				fmt.Fprint(v.w, clearLine, v.spinner)
			}
			v.mu.Unlock()
		}
	}
}

// wait says what is being waited for from now on.
func (v *liveView) wait(doing string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.doing, v.start = doing, time.Now()
}

// Write passes on what the handler or the log prints.
func (v *liveView) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.erase()
	if len(p) > 0 {
		v.atStart = p[len(p)-1] == '\n'
	}
	return v.w.Write(p)
}

func (v *liveView) item(value json.RawMessage) {
	v.mu.Lock()
	v.items++
	n := v.items
	v.mu.Unlock()
	fmt.Fprintf(v, "stream %d: %s\n", n, shown(value))
}

// progress shows an interim output, once.
func (v *liveView) progress(value json.RawMessage) {
	v.mu.Lock()
	same := len(value) == 0 || bytes.Equal(v.last, value)
	v.last = value
	v.mu.Unlock()
	if !same {
		fmt.Fprintf(v, "progress: %s\n", shown(value))
	}
}

func (v *liveView) erase() {
	if v.spinner != "" {
		fmt.Fprint(v.w, clearLine)
		v.spinner = ""
	}
}

func shown(value json.RawMessage) string {
	if len(value) <= maxShown {
		return string(value)
	}
	return fmt.Sprintf("%s… (%d bytes)", bytes.ToValidUTF8(value[:maxShown], nil), len(value))
}
