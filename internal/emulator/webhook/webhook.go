// Package webhook delivers the news of a job's end to the URL that its submitter gave. A receiver that is
// slow, dead or hostile costs the deliveries to itself, and nobody else anything.
package webhook

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Options of a Sender. A field that is zero has its default.
type Options struct {
	Gaps         []time.Duration // between the attempts, one more than gaps (5s and 15s, as hosted)
	Timeout      time.Duration   // of one attempt (10s)
	AllowPrivate bool            // also send to this machine and to private networks
	Log          *slog.Logger

	Concurrent int           // attempts at a time (64)
	PerHost    int           // of them to one host (8)
	MaxPending int           // deliveries that have not ended (10 000), a quarter of them to one host
	MaxBytes   int           // of their bodies together (256 MiB)
	CloseAfter time.Duration // what Close gives to the attempts that can still be made (2s)
}

// Sender delivers messages. Its goroutines live from a Send to the end of that delivery, and no longer
// than Close.
type Sender struct {
	opts   Options
	client *http.Client
	places chan struct{} // one for each attempt at a time

	ctx     context.Context //nolint:containedctx // the life of all deliveries, ended by Close
	cancel  context.CancelFunc
	closing chan struct{}
	ended   sync.WaitGroup

	mu      sync.Mutex
	lanes   map[string]*lane // by host
	pending int
	bytes   int
	lost    int // since the last line about it
	closed  bool
}

// lane holds the places of one host.
type lane struct {
	places chan struct{}
	users  int
}

// Message is one delivery.
type Message struct {
	Job  string // for log lines
	URL  *url.URL
	Body []byte
}

// New is a Sender. It starts nothing.
func New(o Options) *Sender {
	if o.Gaps == nil {
		o.Gaps = []time.Duration{5 * time.Second, 15 * time.Second}
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.Concurrent = cmp.Or(o.Concurrent, 64)
	o.PerHost = cmp.Or(o.PerHost, 8)
	o.MaxPending = cmp.Or(o.MaxPending, 10_000)
	o.MaxBytes = cmp.Or(o.MaxBytes, 256<<20)
	o.CloseAfter = cmp.Or(o.CloseAfter, 2*time.Second)
	s := &Sender{
		opts: o, client: newClient(o),
		places:  make(chan struct{}, o.Concurrent),
		closing: make(chan struct{}), lanes: map[string]*lane{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Send starts a delivery and returns at once. Where too many are pending already, it drops the message
// and says so.
func (s *Sender) Send(m Message) {
	l := s.admit(m)
	if l == nil {
		return
	}
	s.ended.Go(func() {
		outcome := s.deliver(m, l)
		s.release(m, l, outcome)
	})
}

// admit counts a message in and returns the lane of its host, or nil when there is no room.
func (s *Sender) admit(m Message) *lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		s.opts.Log.Warn("webhook not sent: its job ended while the emulator was closing", "job", m.Job)
		return nil
	case s.pending >= s.opts.MaxPending, s.pending > 0 && s.bytes+len(m.Body) > s.opts.MaxBytes:
		s.lose("webhooks are dropped: too many wait to be delivered", "pending", s.pending, "bytes", s.bytes)
		return nil
	}
	l := s.lanes[m.URL.Host]
	if l == nil {
		l = &lane{places: make(chan struct{}, s.opts.PerHost)}
		s.lanes[m.URL.Host] = l
	}
	if l.users >= max(1, s.opts.MaxPending/hostShare) {
		s.lose("webhooks are dropped: too many wait for one receiver", "host", m.URL.Host, "pending", l.users)
		return nil
	}
	s.pending++
	s.bytes += len(m.Body)
	l.users++
	return l
}

// hostShare is the part of all pending deliveries that one host may have, so that a dead one leaves room for others.
const hostShare = 4

// lose counts a message that there was no room for. Only the first of many is told. The lock is held.
func (s *Sender) lose(why string, attrs ...any) {
	if s.lost++; s.lost == 1 {
		s.opts.Log.Warn(why, attrs...)
	}
}

func (s *Sender) release(m Message, l *lane, o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending--; s.pending == 0 && !s.closed {
		s.lost = 0
	}
	s.bytes -= len(m.Body)
	if l.users--; l.users == 0 {
		delete(s.lanes, m.URL.Host)
	}
	if o == dropped {
		s.lost++
	}
}

// Close ends the Sender: attempts that are due are made, for a moment; what would be tried again later is
// dropped, with one line for all.
func (s *Sender) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed, s.lost = true, 0
	s.mu.Unlock()

	close(s.closing)
	timer := time.AfterFunc(s.opts.CloseAfter, s.cancel)
	s.ended.Wait()
	timer.Stop()
	s.cancel()
	s.client.CloseIdleConnections()
	if s.lost > 0 {
		s.opts.Log.Warn("webhooks were not delivered before the end", "webhooks", s.lost)
	}
}
