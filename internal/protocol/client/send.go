package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"runpodctl-worker/internal/protocol"
)

const (
	maxSmallAnswer = 1 << 20  // an answer that carries no job
	maxDrained     = 64 << 10 // read to keep a connection; above that a new one is cheaper
	maxTrusted     = 32 << 20 // allocated because of a Content-Length alone
	maxRefusal     = 4 << 10  // read of a refusal
	maxQuoted      = 300      // bytes of it that a message quotes
	// drainLimit is how long the end of a body is waited for that says nothing new.
	drainLimit = time.Second
)

// request is one call.
type request struct {
	call   string // its name in errors
	method string
	url    string
	job    string        // goes out as X-Request-ID
	body   protocol.Body // of a post
	limit  time.Duration
	most   int64 // bytes of the answer that are read, 0 for maxSmallAnswer
}

// send makes the call and returns the body of a 2xx answer; anything else is an error.
//
// It uses the transport without an http.Client, which would follow redirects: that turns a post into a get,
// and shows the key to another host.
func (c *Client) send(ctx context.Context, transport *http.Transport, r request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	req, err := c.build(ctx, r)
	if err != nil {
		return nil, err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, transportError(r.call, err)
	}
	defer func() {
		defer time.AfterFunc(drainLimit, cancel).Stop()
		_, _ = io.CopyN(io.Discard, resp.Body, maxDrained)
		_ = resp.Body.Close()
	}()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer time.AfterFunc(drainLimit, cancel).Stop()
		return nil, c.refusal(r.call, resp)
	}
	if r.method == http.MethodPost { // any 2xx settles a post, whatever a proxy wrote below it
		return nil, nil
	}
	// The transport decodes the one encoding that it offers, gzip, and hides the header.
	if enc := resp.Header.Get("Content-Encoding"); enc != "" {
		return nil, &protocol.DecodeError{Call: r.call, Err: fmt.Errorf("it is encoded as %q, which was not asked for", enc)}
	}
	body, err := readAll(resp, r.most)
	if err != nil {
		return nil, transportError(r.call, err)
	}
	return body, nil
}

func (c *Client) build(ctx context.Context, r request) (*http.Request, error) {
	if r.method != http.MethodPost {
		req, err := http.NewRequestWithContext(ctx, r.method, r.url, nil)
		if err != nil {
			return nil, transportError(r.call, err)
		}
		req.Header = c.headers // which the transport only reads
		return req, nil
	}
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, r.body.Open())
	if err != nil {
		return nil, transportError(r.call, err)
	}
	if req.GetBody == nil { // a body that the library does not know: its length and its beginning are to be told
		req.ContentLength = r.body.Size()
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(r.body.Open()), nil }
	}
	req.Header = c.posts // which the transport only reads, as above
	if isToken(r.job) {
		req.Header = maps.Clone(c.posts)
		req.Header["X-Request-Id"] = []string{r.job}
	}
	return req, nil
}

// isToken tells whether an id can stand in a header; a request with one that cannot would never be sent.
func isToken(id string) bool {
	return !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' })
}

// transportError leaves the URL out of the message: it is long, and may hold what nobody should log.
func transportError(call string, err error) error {
	if inURL, ok := errors.AsType[*url.Error](err); ok {
		err = inURL.Err
	}
	if isReset(err) {
		return &protocol.ResetError{Call: call, Err: err}
	}
	return fmt.Errorf("%s: %w", call, err)
}

func isReset(err error) bool {
	if _, ok := errors.AsType[streamError](err); ok {
		return true
	}
	return slices.ContainsFunc(cuts, func(cut error) bool { return errors.Is(err, cut) })
}

// cuts are the faces of a connection that was cut. The transport closes it when a read finds that out, and the write
// of the body then fails for that.
var cuts = []error{syscall.ECONNRESET, syscall.EPIPE, io.ErrUnexpectedEOF, io.EOF, net.ErrClosed}

// streamError is how net/http gives away its own, unexported error of an HTTP/2 stream that was reset: into any struct
// with these fields.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string {
	return fmt.Sprintf("stream %d was reset with code %d", e.StreamID, e.Code)
}

// refusal quotes the answer, in which a proxy may quote what it was sent.
func (c *Client) refusal(call string, resp *http.Response) error {
	// Without its body a refusal is still one, so a failure to read it changes nothing.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(body), "")), " ")
	text = c.secrets.String(text) // before it is cut: nobody finds a part of a key
	text = strings.ToValidUTF8(text[:min(len(text), maxQuoted)], "")
	return &protocol.StatusError{
		Call:       call,
		Code:       resp.StatusCode,
		RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now()),
		HTML:       strings.HasPrefix(text, "<") || strings.Contains(resp.Header.Get("Content-Type"), "html"),
		Body:       text,
	}
}

func readAll(resp *http.Response, most int64) ([]byte, error) {
	if most == 0 {
		most = maxSmallAnswer
	}
	var buf bytes.Buffer
	if size := resp.ContentLength; size > 0 {
		// MinRead more, so that the end is seen without growing; but no more than a claim can be trusted.
		buf.Grow(int(min(size, maxTrusted)) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(resp.Body, most+1))
	if err == nil && n > most {
		err = fmt.Errorf("the answer has more than %d bytes", most)
	}
	return buf.Bytes(), err
}
