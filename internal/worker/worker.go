package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// abandonAfter bounds the wait for handlers that do not come back although their program is gone.
const abandonAfter = 500 * time.Millisecond

// Worker runs the jobs of a platform with a handler. It is used for one Run.
type Worker struct {
	cfg      Config
	factory  func() Handler
	platform Platform
	log      *slog.Logger

	clock       *clock
	concurrency atomic.Int64 // the last good value
	ledger      *ledger
	crashers    crashers
	said        recent   // messages
	refused     refusals // jobs whose results the platform did not want
	noStream    sync.Once
	next        chan *task // to whoever has run one

	fetching   context.Context // no job is taken after its end
	endFetch   context.CancelCauseFunc
	work       context.Context // jobs run and results are posted until its end
	endWork    context.CancelCauseFunc
	background context.Context // everything else, until the last job is settled or let go
	loops      sync.WaitGroup  // of the background
	tasks      sync.WaitGroup
}

// New returns a Worker. Nothing happens before Run, which asks factory for a Handler at each start of the program.
func New(cfg Config, factory func() Handler, platform Platform) *Worker {
	cfg = cfg.withDefaults()
	w := &Worker{
		cfg:      cfg,
		factory:  factory,
		platform: platform,
		log:      cfg.Log,
		clock:    newClock(time.Now),
		ledger:   newLedger(cfg.Concurrency),
		crashers: crashers{crashes: cfg.Journal.Crashes()},
		next:     make(chan *task),
	}
	w.concurrency.Store(int64(cfg.Concurrency))
	return w
}

// Run starts the handler, works, and stops the handler. To stop fetching is not to stop working: when fetch
// ends, no further job is taken, and Run returns when those that are held are settled. When work ends, it
// returns at once. The error is an *UnsettledError if jobs are left, and says why where the
// Reason is not the caller's own wish.
func (w *Worker) Run(fetch, work context.Context) (Reason, error) {
	w.fetching, w.endFetch = context.WithCancelCause(fetch)
	defer w.endFetch(nil)
	w.work, w.endWork = context.WithCancelCause(work)
	defer w.endWork(nil)
	defer context.AfterFunc(w.work, func() { w.endFetch(nil) })()

	var endBackground context.CancelFunc
	w.background, endBackground = context.WithCancel(context.WithoutCancel(work))
	defer w.loops.Wait()
	defer endBackground()

	w.clock.start()
	w.loop(func() { w.watchFreezes(w.background) })
	w.settleLate()
	if w.cfg.PingEarly {
		w.loop(func() { w.heartbeat(w.background, w.ledger.ids) })
	}
	life, err := w.begin(w.fetching, true)
	if err != nil {
		if fetch.Err() != nil || work.Err() != nil {
			w.drain()
			return w.end()
		}
		w.letGo() // late results stay in the journal
		w.awaitTasks()
		return NotStarted, err
	}
	if !w.cfg.PingEarly {
		w.loop(func() { w.heartbeat(w.background, w.ledger.ids) })
	}
	w.loop(func() { w.watchStops(w.background) })
	w.loop(func() { w.supervise(w.background, life) })

	w.shield(w.fetchAll)
	w.drain()
	endBackground()
	w.loops.Wait()
	return w.end()
}

func (w *Worker) fetchAll() {
	open, cancel := linger(w.fetching, w.work, w.cfg.StopLinger)
	defer cancel()
	w.ledger.setFetching(true)
	defer w.ledger.setFetching(false)
	w.fetch(w.fetching, open)
}

// drain waits for the jobs that are held, and lets go of those that do not get settled in time.
func (w *Worker) drain() {
	ctx, cancel := w.clock.timeout(w.work, w.cfg.GracePeriod, errReleased)
	defer cancel()
	if !w.ledger.awaitEmpty(ctx) {
		w.letGo()
	}
}

// end stops the handler and says how the worker ended.
func (w *Worker) end() (Reason, error) {
	reason, errs := Drained, []error(nil)
	switch cause := context.Cause(w.fetching); {
	case errors.Is(cause, errRefresh):
		reason = Refreshed
	case errors.Is(cause, errExited):
		reason = HandlerExited
		errs = append(errs, cause)
	case errors.Is(cause, errMistake):
		errs = append(errs, cause)
	}
	if life := w.ledger.present(); life != nil {
		errs = append(errs, stopHandler(w.work, life.handler))
	}
	w.awaitTasks()
	if unsettled := w.ledger.unsettled(); unsettled != nil {
		errs = append(errs, unsettled)
	}
	return reason, errors.Join(errs...)
}

// awaitTasks waits for the goroutines of the jobs.
func (w *Worker) awaitTasks() {
	limit := abandonAfter
	if w.cfg.FailOnKill {
		limit += farewellTime
	}
	done := make(chan struct{})
	go func() { w.tasks.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(limit):
		w.log.Warn("A handler did not come back; the worker ends without it.")
	}
}
