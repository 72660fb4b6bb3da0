package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

const (
	userAgent  = "Go-http-client/2.0" // what receivers see hosted
	maxAnswer  = 64 << 10             // what is read of an answer, so that its connection can be used again
	maxHeaders = 64 << 10
)

type outcome int

const (
	delivered outcome = iota
	failed            // as often as it was to be tried, or for good
	dropped           // Close came first
)

// deliver makes the attempts of one message.
func (s *Sender) deliver(m Message, l *lane) outcome {
	log := s.opts.Log.With("job", m.Job, "webhook", m.URL.Redacted())
	for attempt := 1; ; attempt++ {
		err := s.attempt(m, l)
		var refused *refusedError
		switch {
		case err == nil:
			log.Debug("webhook delivered", "attempt", attempt)
			return delivered
		case s.ctx.Err() != nil:
			return dropped
		case errors.As(err, &refused):
			log.Warn("webhook refused: " + refused.Error())
			return failed
		case attempt > len(s.opts.Gaps):
			log.Warn(fmt.Sprintf("webhook not delivered after %d attempts: %v", attempt, err))
			return failed
		}
		gap := s.opts.Gaps[attempt-1]
		log.Info(fmt.Sprintf("webhook not delivered: %v; trying again in %s", err, gap))
		if !s.pause(gap) {
			return dropped
		}
	}
}

// attempt posts a message once, when the host and the Sender have a place for it.
func (s *Sender) attempt(m Message, l *lane) error {
	for _, places := range []chan struct{}{l.places, s.places} {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.opts.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL.String(), bytes.NewReader(m.Body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Traceparent", fmt.Sprintf("00-%016x%016x-%016x-01", rand.Uint64(), rand.Uint64(), rand.Uint64()|1))
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	// After a 101 the body is the connection itself, which no context ends.
	defer context.AfterFunc(ctx, func() { _ = res.Body.Close() })()
	if res.StatusCode != http.StatusSwitchingProtocols {
		_, _ = io.CopyN(io.Discard, res.Body, maxAnswer) // the status has settled it
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("the receiver answered %s", res.Status)
	}
	return nil
}

// pause waits between two attempts; false means that there will be no other.
func (s *Sender) pause(gap time.Duration) bool {
	timer := time.NewTimer(gap)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.closing:
		return false
	}
}
