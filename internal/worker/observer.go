package worker

import (
	"time"

	"runpodctl-worker/internal/protocol"
)

// End is how a job has left the worker.
type End string

// The ends of a job.
const (
	Completed   End = "completed"   // its output was accepted
	Failed      End = "failed"      // its error was accepted
	Stopped     End = "stopped"     // the platform stopped it
	Released    End = "released"    // it was given back to the platform
	Undelivered End = "undelivered" // the platform would not have its result, or could not be reached
)

// Observer is told what happens in a worker. Any of its functions may be nil. They are called from many goroutines, and
// must return at once.
type Observer struct {
	Took      func(jobs int, held time.Duration, err error)       // a take was answered
	Started   func(job protocol.Job)                              // its handler is called; again after some crashes
	Returned  func(job protocol.Job, ran time.Duration)           // the handler is back
	Ended     func(job protocol.Job, how End, wait time.Duration) // since the end of the job was known
	Pinged    func(err error)                                     // a heartbeat was answered, or could not be sent
	Restarted func()                                              // the program is started anew
}

func (o Observer) took(jobs int, held time.Duration, err error) {
	if o.Took != nil {
		o.Took(jobs, held, err)
	}
}

func (o Observer) started(job protocol.Job) {
	if o.Started != nil {
		o.Started(job)
	}
}

func (o Observer) returned(job protocol.Job, began time.Time) {
	if o.Returned != nil {
		o.Returned(job, time.Since(began))
	}
}

func (o Observer) pinged(err error) {
	if o.Pinged != nil {
		o.Pinged(err)
	}
}

func (o Observer) restarted() {
	if o.Restarted != nil {
		o.Restarted()
	}
}

// ended tells the observer how the job has left the worker.
func (t *task) ended(how End) {
	if ended := t.w.cfg.Observer.Ended; ended != nil {
		ended(t.job, how, time.Since(t.decided))
	}
}

// accepted tells it that the platform has the result.
func (t *task) accepted(outcome protocol.Outcome) {
	if outcome.Error != "" || t.failed {
		t.ended(Failed)
		return
	}
	t.ended(Completed)
}
