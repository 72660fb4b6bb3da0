package worker

import (
	"errors"
	"log/slog"
	"runtime/debug"
)

// errMistake is the end of a worker that went wrong by itself.
var errMistake = errors.New("a mistake in this program")

// task runs f beside everything else, as a part of a job.
func (w *Worker) task(f func()) { w.tasks.Go(func() { w.shield(f) }) }

// loop runs f beside everything else, as a part of the background.
func (w *Worker) loop(f func()) { w.loops.Go(func() { w.shield(f) }) }

// shield runs f, whose panic ends the worker as a second signal would. The runtime's way would go past the log, which keeps
// secrets, and leave the program behind.
func (w *Worker) shield(f func()) {
	defer func() {
		if p := recover(); p != nil {
			w.log.Error("A mistake in this program; the worker ends.", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			w.endFetch(errMistake)
			w.endWork(errReleased)
		}
	}()
	f()
}
