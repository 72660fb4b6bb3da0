// Package inprocess calls a server without a network.
package inprocess

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
)

// Transport carries requests to a handler, whatever host they name. A call whose context ends while it is held is
// abandoned like one whose connection broke.
type Transport struct{ Handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	r = r.Clone(ctx) // the server's side may change its request
	if r.Body == nil {
		r.Body = http.NoBody
	}
	defer r.Body.Close()
	r.RequestURI = r.URL.RequestURI()
	rec := &recorder{gone: ctx.Err, header: http.Header{}, status: http.StatusOK}
	broken := rec.serve(t.Handler, r)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	length, body := int64(rec.body.Len()), io.Reader(&rec.body)
	if broken {
		if !rec.wrote {
			return nil, errBroken
		}
		length, body = -1, io.MultiReader(body, brokenReader{})
	}
	return &http.Response{
		Status:     strconv.Itoa(rec.status) + " " + http.StatusText(rec.status),
		StatusCode: rec.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: rec.header, ContentLength: length,
		Body: io.NopCloser(body), Request: r,
	}, nil
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }

var errBroken = errors.New("the connection broke")

// serve reports whether the handler broke the answer off, as it can with a connection.
func (r *recorder) serve(h http.Handler, req *http.Request) (broken bool) {
	defer func() {
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler { //nolint:errorlint // net/http compares it like this
				panic(p)
			}
			broken = true
		}
	}()
	h.ServeHTTP(r, req)
	return false
}

// recorder gathers an answer; like a connection it fails once its reader has gone.
type recorder struct {
	gone   func() error
	header http.Header
	status int
	wrote  bool
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if !r.wrote {
		r.status, r.wrote = status, true
	}
}

func (r *recorder) Write(b []byte) (int, error) {
	r.wrote = true
	if err := r.gone(); err != nil {
		return 0, err
	}
	return r.body.Write(b)
}

// FlushError makes http.ResponseController tell whether the reader is still there.
func (r *recorder) FlushError() error { return r.gone() }
