package program

import (
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"runpodctl-worker/internal/proc"
	"runpodctl-worker/internal/protocol"
)

const (
	// longestLine is how much of a line is kept until its end comes.
	longestLine = 64 << 10
	// progressTime is how often a line is passed on that is written anew all the time.
	progressTime = 5 * time.Second
)

// Line takes one line of the program's output. to is Options.Stdout or Options.Stderr. The job is the one that it belongs
// to as far as anybody can tell from outside: the only one that runs, else the zero Job. cut bytes of the line were left
// out at its end. The text is only lent.
type Line func(to io.Writer, job protocol.Job, text []byte, cut int)

// output is one stream of the program, in lines.
type output struct {
	mu    sync.Mutex
	lines *proc.Lines
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lines.Write(b)
}

// Flush passes on what came last, unless somebody still waits to write.
func (o *output) Flush() {
	if o.mu.TryLock() {
		defer o.mu.Unlock()
		o.lines.Flush()
	}
}

// stream is where one of the program's streams goes.
type stream interface {
	io.Writer
	Flush()
}

// outputs are the two streams of the program.
func (p *Program) outputs() (stdout, stderr io.Writer) {
	return p.output(p.opts.Stdout), p.output(p.opts.Stderr)
}

func (p *Program) output(to io.Writer) io.Writer {
	if to == nil {
		return nil
	}
	var s stream
	if p.opts.Line == nil {
		s = p.opts.Secrets.Writer(to)
	} else {
		s = p.inLines(to)
	}
	p.streams = append(p.streams, s)
	return s
}

func (p *Program) inLines(to io.Writer) *output {
	lines := proc.NewLines(longestLine, func(text []byte, cut int) { p.opts.Line(to, p.inside.only(), text, cut) })
	lines.Every = progressTime
	return &output{lines: lines}
}

// inside are the jobs that the program has.
type inside struct {
	mu   sync.Mutex
	jobs map[string]protocol.Job
}

func (i *inside) enter(job protocol.Job) (leave func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.jobs == nil {
		i.jobs = map[string]protocol.Job{}
	}
	i.jobs[job.ID] = protocol.Job{ID: job.ID, BatchID: job.BatchID}
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.jobs, job.ID)
	}
}

// only is the job that runs alone; no job where there are several.
func (i *inside) only() protocol.Job {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.jobs) != 1 {
		return protocol.Job{}
	}
	return slices.Collect(maps.Values(i.jobs))[0]
}
