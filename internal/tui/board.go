package tui

import (
	"slices"
	"time"

	"runpodctl-worker/internal/checks"
)

// stage is how far a line has come.
type stage int

const (
	waiting stage = iota
	running
	done
)

// line is one step on the board.
type line struct {
	step  checks.Step
	by    string // key of the step that brought it to light
	stage stage
	began time.Time
	last  *checks.Row // its newest result; nil: it has none yet
}

func (l *line) key() string { return l.step.Key() }

// troubled tells whether the newest result is one to look at.
func (l *line) troubled() bool {
	if l.last == nil {
		return false
	}
	status := l.last.Result.Status
	return status == checks.Warn || status == checks.Error || status == checks.Fail
}

// board is the picture that events paint: each step once, with the newest that is known of it.
type board struct {
	lines []*line
	began time.Time // of the newest run of everything
	took  time.Duration
}

func newBoard(steps []checks.Step) *board {
	b := &board{}
	for _, s := range steps {
		b.lines = append(b.lines, &line{step: s})
	}
	return b
}

func (b *board) find(key string) *line {
	if i := b.index(key); i >= 0 {
		return b.lines[i]
	}
	return nil
}

func (b *board) index(key string) int {
	return slices.IndexFunc(b.lines, func(l *line) bool { return l.key() == key })
}

// expect says that steps will run. What they brought to light before waits with them.
func (b *board) expect(steps []checks.Step) {
	for _, s := range steps {
		if l := b.find(s.Key()); l != nil {
			l.step = s
			b.wait(l)
		}
	}
}

func (b *board) wait(l *line) {
	l.stage = waiting
	for _, child := range b.lines {
		if child.by == l.key() {
			b.wait(child)
		}
	}
}

func (b *board) started(e checks.Started) {
	if l := b.find(e.Step.Key()); l != nil {
		l.stage, l.began = running, e.At
	}
}

// finished records a result. What the step brought to light earlier and does not name again is gone.
func (b *board) finished(row checks.Row) {
	l := b.find(row.Step.Key())
	if l == nil {
		return
	}
	l.stage, l.last = done, &row
	named := map[string]bool{}
	for _, c := range row.Result.Found {
		named[checks.Step{Check: c, In: row.Step.In}.Key()] = true
	}
	for _, child := range slices.Clone(b.lines) {
		if child.by == l.key() && !named[child.key()] {
			b.drop(child)
		}
	}
}

func (b *board) drop(l *line) {
	b.lines = slices.DeleteFunc(b.lines, func(other *line) bool { return other == l })
	for _, child := range slices.Clone(b.lines) {
		if child.by == l.key() {
			b.drop(child)
		}
	}
}

func (b *board) found(e checks.Found) {
	at := b.index(e.After) + 1
	for _, s := range e.Steps {
		if i := b.index(s.Key()); i >= 0 {
			b.lines[i].step, b.lines[i].stage = s, waiting
			at = i + 1
			continue
		}
		b.lines = slices.Insert(b.lines, at, &line{step: s, by: e.After})
		at++
	}
}

// report is what is known. Of a step that has not ended since it was asked for, the result before counts.
func (b *board) report() checks.Report {
	r := checks.Report{Began: b.began, Took: b.took}
	for _, l := range b.lines {
		if l.last == nil {
			r.Rows = append(r.Rows, checks.Row{Step: l.step, Result: checks.Skipped("not run yet")})
			continue
		}
		r.Rows = append(r.Rows, *l.last)
	}
	return r
}
