package emulator

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"runpodctl-worker/internal/emulator/store"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/server"
)

// lastLines is how long after the end of a job its last lines may still come: they take another way than its result.
const lastLines = time.Second

// JobLogs are the lines of JSON that jobs have printed.
type JobLogs interface {
	// Copy writes the lines of a job from an offset on, and returns the next offset, or fs.ErrNotExist where there are none yet.
	Copy(to io.Writer, job string, offset int64) (int64, error)
	// Grown returns a channel that is closed when the next line of some job has come.
	Grown() <-chan struct{}
}

// jobLog answers with the lines of a job: those that there are, or with ?follow also those that come until it has ended.
func (e *Emulator) jobLog(c echo.Context) error {
	if e.opts.JobLogs == nil {
		server.WriteProblem(c.Response(), http.StatusNotFound, "lines of jobs are kept with --log-dir DIR only")
		return nil
	}
	follow := false
	if text := c.QueryParam("follow"); text != "" {
		var err error
		if follow, err = strconv.ParseBool(text); err != nil {
			return protocol.BadRequestError("follow: not true or false")
		}
	}
	ctx, end := context.WithCancel(c.Request().Context())
	defer end()
	id := jobOf(c)
	ep := e.holder(ctx, id)
	out := &lines{logs: e.opts.JobLogs, job: id, w: c.Response()}
	switch err := out.more(); {
	case errors.Is(err, fs.ErrNotExist) && ep == nil:
		return protocol.ErrUnknownJob
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !out.begun:
		return err
	case follow && ep != nil:
		out.follow(ctx, ep.ending(ctx, id))
	default:
		out.begin() // also where there are no lines yet
	}
	return nil
}

// jobOf is the id in the path, which is any text here: a handler may log about jobs that nobody has submitted.
func jobOf(c echo.Context) string {
	id := c.Param("job")
	if c.Request().URL.RawPath == "" {
		return id
	}
	if plain, err := url.PathUnescape(id); err == nil {
		return plain
	}
	return id
}

// holder is the endpoint that has a job; nil if none has it any more.
func (e *Emulator) holder(ctx context.Context, job string) *endpoint {
	for _, ep := range e.endpoints {
		if _, err := ep.store.Get(ctx, job); err == nil {
			return ep
		}
	}
	return nil
}

// ending is closed when a job has ended, is gone, or is waited for no longer.
func (ep *endpoint) ending(ctx context.Context, job string) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = ep.store.Wait(ctx, job, store.Ended, ep.opts.MaxPolicy) // no job exists for longer
	}()
	return ended
}

// lines is an answer that grows.
type lines struct {
	logs   JobLogs
	job    string
	w      http.ResponseWriter
	offset int64
	begun  bool
}

// more sends what has come since the last time. An answer begins with the first of it.
func (l *lines) more() error {
	next, err := l.logs.Copy(l, l.job, l.offset)
	l.offset = next
	if l.begun {
		_ = http.NewResponseController(l.w).Flush() // a reader that has gone ends the context
	}
	return err
}

// follow goes on until the job has ended and its last lines have come, or the reader has gone.
func (l *lines) follow(ctx context.Context, ended <-chan struct{}) {
	l.begin()
	var last <-chan time.Time
	for {
		grown := l.logs.Grown()
		if err := l.more(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
		select {
		case <-grown:
		case <-ended:
			ended, last = nil, time.After(lastLines)
		case <-last:
			_ = l.more()
			return
		case <-ctx.Done():
			return
		}
	}
}

func (l *lines) begin() {
	if l.begun {
		return
	}
	l.begun = true
	l.w.Header().Set("Content-Type", "application/x-ndjson")
	l.w.Header().Set("Cache-Control", "no-cache")
	l.w.WriteHeader(http.StatusOK)
}

// Write implements io.Writer.
func (l *lines) Write(b []byte) (int, error) {
	l.begin()
	return l.w.Write(b)
}
