package worker

import (
	"fmt"
	"log/slog"

	"runpodctl-worker/internal/protocol"
)

// reportSick gives the program up if the outcome of its job says that it cannot use its GPU any more.
func (t *task) reportSick(outcome protocol.Outcome) {
	why := sticky(outcome.Error)
	if why != "" && t.w.ledger.condemnSick(t, why) {
		t.log(slog.LevelError, "The program cannot use its GPU any more; it is started again.", slog.String("gpu", why))
	}
}

// condemnSick has the program of a job killed, unless somebody else has.
func (l *ledger) condemnSick(t *task, why string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	life := t.life
	if life.condemned || life.over() {
		return false
	}
	life.sick, life.foundBy, life.condemned = why, t, true
	close(life.doomed)
	l.changed.Broadcast()
	return true
}

// explain is the error of a job that was lost with its program: where that was ended for the GPU, how says nothing.
func (l *ledger) explain(life *life, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil || life.sick == "" {
		return err
	}
	return fmt.Errorf("the program was ended while the job ran: its GPU had failed in another job (%s)", life.sick)
}
