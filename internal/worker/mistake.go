package worker

import (
	"errors"
	"log/slog"

	"runpodctl-worker/internal/mistake"
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
	if err := mistake.Catch(f); err != nil {
		w.log.Error("The worker ends.", slog.Any("error", err))
		w.endFetch(errMistake)
		w.endWork(errReleased)
	}
}
