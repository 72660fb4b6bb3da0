package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/volume"
	"runpodctl-worker/internal/worker"
)

const (
	// calmTime is from a job's end to the look at what it has changed: those that follow may change more.
	calmTime = 10 * time.Second
	// lookInterval is the time between two looks where no job is seen to end.
	lookInterval = time.Minute
	// lastSyncTime is what the last sync may take, when the program has ended.
	lastSyncTime = 10 * time.Second
	// syncCopiers keeps a sync from getting into the way of jobs.
	syncCopiers = 1
)

// engine is what a warmCache needs of a volume.Cache.
type engine interface {
	Available() error
	Hydrate(ctx context.Context) (volume.Report, error)
	Sync(ctx context.Context) (volume.Report, error)
	Changed(ctx context.Context) (bool, error)
}

// warmCache fills directories from a network volume before the program starts, and mirrors there what the program adds to
// them. Whatever goes wrong with it costs time and nothing else. A nil one does nothing.
type warmCache struct {
	fill, keep engine // the same mirror, in haste and at leisure
	mirror     string
	timeout    time.Duration // of hydrate; 0: none
	grace      time.Duration // of the whole drain; 0: none
	log        *slog.Logger
	told       func(direction string, r volume.Report) // hears what was copied; may be nil

	idle    bool          // there is no volume, or the mirror holds what is missing here
	changed chan struct{} // holds a word when a job may have changed something
	rest    context.CancelFunc
	abort   context.CancelFunc // nil unless the program has been ready
	done    chan struct{}      // closed when the last sync has ended
	warned  bool
}

// hydrate fills the directories. It returns when they are full, or cannot be filled, or ctx ends.
func (c *warmCache) hydrate(ctx context.Context) {
	if c == nil {
		return
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if c.timeout > 0 {
		limited, cancel = context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("it was not done after %s (--%s)", c.timeout, flagCacheTimeout))
	}
	defer cancel()
	report, err := c.fill.Hydrate(limited)
	c.idle = err != nil
	switch {
	case err == nil:
		c.log.Info("VolumeCache: " + hydrated(report, c.mirror))
		c.tell(actionHydrate, report)
		if err := c.fill.Available(); err != nil { // it answers, but may be a folder of this machine
			c.log.Warn("VolumeCache: " + err.Error())
		}
	case errors.Is(err, volume.ErrNoVolume):
		c.log.Info("VolumeCache: nothing is cached: " + err.Error())
	case ended(ctx): // whoever sent the signal knows
	default:
		if ended(limited) {
			err = context.Cause(limited)
		}
		c.log.Warn("VolumeCache: not everything could be hydrated; the handler starts with what is there, and the mirror stays as it is.", slog.Any("error", err))
	}
}

// begin mirrors the directories for the first time, and from then on when something may have changed: after a job and, if every
// is not 0, that often. It is called when the program is ready.
func (c *warmCache) begin(l lifecycle, every time.Duration) {
	if c == nil || c.idle {
		return
	}
	var syncing, resting context.Context
	syncing, c.abort = context.WithCancel(l.work)
	resting, c.rest = context.WithCancel(syncing)
	if c.grace > 0 {
		context.AfterFunc(l.fetch, func() { time.AfterFunc(c.grace, c.abort) })
	}
	go c.mirrorChanges(syncing, resting, every)
}

// end mirrors what has changed last. It returns within lastSyncTime.
func (c *warmCache) end() {
	if c == nil || c.abort == nil {
		return
	}
	c.rest()
	limit := time.AfterFunc(lastSyncTime, c.abort)
	<-c.done
	limit.Stop()
	c.abort()
}

// watch is an observer that hears of jobs on behalf of the cache too.
func (c *warmCache) watch(o worker.Observer) worker.Observer {
	if c == nil {
		return o
	}
	returned := o.Returned
	o.Returned = func(job protocol.Job, ran time.Duration) {
		if returned != nil {
			returned(job, ran)
		}
		c.mayHaveChanged()
	}
	return o
}

func (c *warmCache) mayHaveChanged() {
	select {
	case c.changed <- struct{}{}:
	default: // it is known already
	}
}

// mirrorChanges syncs until resting ends, and then once more. A volume that does not answer is left alone: it would hold
// up each further sync as long.
func (c *warmCache) mirrorChanges(syncing, resting context.Context, every time.Duration) {
	defer close(c.done)
	err := c.sync(syncing) // without a look: what lies here may never have been mirrored
	for last := false; !last && !errors.Is(err, volume.ErrStalled); {
		last = !c.awaitChange(resting, every)
		err = c.syncChanges(syncing)
	}
}

// awaitChange returns false when ctx has ended.
func (c *warmCache) awaitChange(ctx context.Context, every time.Duration) bool {
	var look <-chan time.Time
	if every > 0 {
		look = time.After(every)
	}
	select {
	case <-c.changed:
		select {
		case <-time.After(calmTime):
		case <-ctx.Done():
		}
		select {
		case <-c.changed: // by another job meanwhile: one look is enough
		default:
		}
	case <-look:
	case <-ctx.Done():
	}
	return !ended(ctx)
}

func (c *warmCache) syncChanges(ctx context.Context) error {
	changed, err := c.keep.Changed(ctx)
	if err == nil && !changed {
		return nil
	}
	return c.sync(ctx) // which says better what is wrong
}

func (c *warmCache) sync(ctx context.Context) error {
	report, err := c.keep.Sync(ctx)
	switch {
	case err == nil:
		c.warned = false
		if report.Files > 0 {
			c.log.Info("VolumeCache: " + synced(report, c.mirror))
		}
		c.tell(actionSync, report)
	case errors.Is(err, volume.ErrBusy):
		c.mayHaveChanged() // so it is tried again
	case ended(ctx):
		c.log.Warn("VolumeCache: the last sync was cut short; the mirror stays as it was.")
	case !c.warned:
		c.warned = true
		c.log.Warn("VolumeCache: the mirror stays as it was.", slog.Any("error", err))
	}
	return err
}

func (c *warmCache) tell(direction string, r volume.Report) {
	if c.told != nil {
		c.told(direction, r)
	}
}
