package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"runpodctl-worker/internal/protocol"
)

// What a job may have waiting to be posted, before its handler is made to wait. One item is always
// accepted.
const (
	maxQueuedItems = 16
	maxQueuedBytes = 4 << 20
)

const chunkFrame = len(`{"output":}`) // what a post has around an item

// outbound is the protocol.Sink of one job. What it takes is posted by one goroutine, which exists only
// for jobs that report something: so items keep their order and nothing is posted after the end.
type outbound struct {
	t *task

	mu       sync.Mutex
	moved    sync.Cond
	started  bool
	closed   bool // the handler is back
	late     bool // it reported something nevertheless
	items    []json.RawMessage
	posting  bool      // the first of them is on its way
	chunkAt  time.Time // when the last one went out
	streamed bool      // there was an item
	bytes    int
	progress json.RawMessage // only the latest is worth posting
	over     error           // why no more items are taken
	muted    bool            // items are dropped: they cannot be posted, and the result has them all
	lost     string          // why the job must fail for its stream
	done     chan struct{}
	unwatch  func() bool
}

func (o *outbound) init(t *task) {
	o.t = t
	o.moved.L = &o.mu
}

// Chunk implements protocol.Sink.
func (o *outbound) Chunk(item json.RawMessage) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.streamed = true
	if err := o.usable(); err != nil || o.muted {
		return err
	}
	if size, limit := len(item)+chunkFrame, o.t.w.cfg.MaxChunk; size > limit {
		o.abandon(fmt.Errorf("an item of the stream is too large: %d bytes, the limit is %d", size, limit))
		return o.over
	}
	o.start()
	if o.join(item) {
		return nil
	}
	for len(o.items) > 0 && (len(o.items) >= maxQueuedItems || o.bytes+len(item) > maxQueuedBytes) {
		o.moved.Wait()
		if err := o.usable(); err != nil || o.muted {
			return err
		}
	}
	o.items = append(o.items, bytes.Clone(item)) // the caller may use its buffer again
	o.bytes += len(item)
	o.moved.Broadcast()
	return nil
}

// Progress implements protocol.Sink.
func (o *outbound) Progress(value json.RawMessage) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		if !o.late {
			o.late = true
			o.t.log(slog.LevelWarn, "Progress that came after the end of the job is dropped.")
		}
		return
	}
	if size, limit := len(value)+chunkFrame, o.t.w.cfg.MaxResult; size > limit {
		o.t.log(slog.LevelWarn, "Progress is left out, since it is too large.", slog.Int("bytes", size), slog.Int("limit", limit))
		return
	}
	o.start()
	o.progress = bytes.Clone(value)
	o.moved.Broadcast()
}

// used tells whether the job has reported anything.
func (o *outbound) used() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.streamed || o.started
}

// usable tells why no item can be taken any more.
func (o *outbound) usable() error {
	switch {
	case o.over != nil:
		return o.over
	case o.t.handling.Err() != nil:
		return context.Cause(o.t.handling)
	case o.closed:
		return errJobOver
	}
	return nil
}

func (o *outbound) start() {
	if o.started {
		return
	}
	o.started = true
	o.done = make(chan struct{})
	o.unwatch = context.AfterFunc(o.t.handling, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.moved.Broadcast()
	})
	o.t.w.task(o.post)
}

// finish waits until what the handler reported is posted; the result may follow then. Progress that is still
// waiting would be replaced at once, so it is dropped. It returns whether there was a stream, and why the
// job must fail, if it must.
func (o *outbound) finish() (streamed bool, lost string) {
	o.mu.Lock()
	o.closed = true
	o.progress = nil
	o.moved.Broadcast()
	started := o.started
	o.mu.Unlock()
	if started {
		<-o.done
		o.unwatch()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.streamed, o.lost
}

// post sends what is queued until the job is over.
func (o *outbound) post() {
	defer close(o.done)
	for {
		progress, item, ok := o.next()
		if !ok {
			return
		}
		if progress != nil {
			o.t.postProgress(progress)
		}
		if item != nil {
			o.posted(o.t.postChunk(item))
		}
	}
}

// next waits for something to post.
func (o *outbound) next() (progress, item json.RawMessage, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		if o.t.handling.Err() != nil {
			return nil, nil, false
		}
		wait := time.Duration(0)
		if len(o.items) > 0 {
			if wait = o.tillFull(); wait <= 0 {
				item = o.items[0]
			}
		}
		if progress, o.progress = o.progress, nil; progress != nil || item != nil {
			o.posting = item != nil
			if o.posting {
				o.chunkAt = time.Now()
			}
			return progress, item, true
		}
		if o.closed {
			return nil, nil, false
		}
		o.waitFor(wait)
	}
}

// posted takes what came of the post of the first item.
func (o *outbound) posted(decided verdict, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes -= len(o.items[0])
	o.items[0] = nil
	o.items = o.items[1:]
	o.posting = false
	switch {
	case decided == settled:
	case o.t.handling.Err() != nil:
		o.items = nil
	case decided == unwanted:
		o.over = errNoWelcome
		o.items = nil
	default:
		o.abandon(fmt.Errorf("the stream could not be posted: %w", err))
		o.items = nil
	}
	o.moved.Broadcast()
}

// abandon ends a stream that cannot be posted whole. Where the result has all of its items, that is no loss; else the
// job fails for it.
func (o *outbound) abandon(why error) {
	if !o.t.life.ready.Aggregate {
		o.lost, o.over = why.Error(), why
		return
	}
	o.muted = true
	if !errors.Is(why, protocol.ErrNoURL) { // said once for all jobs
		o.t.log(slog.LevelWarn, "The stream is cut short; its items are in the result.", slog.Any("error", why))
	}
}
