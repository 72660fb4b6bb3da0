package offload

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	service  = "s3"
	lifetime = 7 * 24 * time.Hour // of a signed URL: no signature holds longer
	unsigned = "UNSIGNED-PAYLOAD" // of a request whose body is not known, or not there
	// maxRefusal is how much of an answer is read for its reason.
	maxRefusal = 64 << 10
)

// object is an output on its way into the bucket.
type object struct {
	url     *url.URL
	content io.ReaderAt
	size    int64
	sum     string
}

// put makes one try. An error that will not get better is permanent.
func (b *Bucket) put(ctx context.Context, o object) error {
	limit := b.tryLimit + time.Duration(o.size/bytesPerSecond)*time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer after %s", limit))
	defer cancel()
	// Each try reads for itself: the transport may still read for the one before.
	body := &countingReader{Reader: io.NewSectionReader(o.content, 0, o.size)}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, o.url.String(), body)
	if err != nil {
		return backoff.Permanent(err)
	}
	req.ContentLength = o.size
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("X-Amz-Content-Sha256", o.sum)
	if err := b.signer.SignHTTP(ctx, b.keys, req, o.sum, service, b.region, time.Now()); err != nil {
		return backoff.Permanent(err)
	}
	req.Header.Set("Expect", "100-continue") // a refusal need not wait for the body
	req.Close = true                         // or the body would follow a refusal, to keep the connection usable
	resp, err := b.client.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", err, cause)
		}
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		if body.read.Load() < o.size { // it was for somebody who does not store anything
			return fmt.Errorf("PUT %s: %s, answered before it had the output", o.url, resp.Status)
		}
		return nil
	}
	refused := refusal(o.url, resp)
	switch code := resp.StatusCode; {
	case code >= http.StatusInternalServerError, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		return refused
	}
	return backoff.Permanent(refused)
}

// countingReader counts what the transport has read, which may go on when the answer is there.
type countingReader struct {
	io.Reader
	read atomic.Int64
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.read.Add(int64(n))
	return n, err
}

// refusal is what the storage says about a request that it does not accept.
func refusal(place *url.URL, resp *http.Response) error {
	var reason struct{ Code, Message string }
	err := xml.NewDecoder(io.LimitReader(resp.Body, maxRefusal)).Decode(&reason)
	if err != nil || reason.Code == "" {
		return fmt.Errorf("PUT %s: %s", place, resp.Status)
	}
	return fmt.Errorf("PUT %s: %s: %s: %s", place, resp.Status, reason.Code, reason.Message)
}

// sign returns a URL by which anybody can fetch an object for a while.
func (b *Bucket) sign(ctx context.Context, place *url.URL) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, place.String(), http.NoBody)
	if err != nil {
		return "", err
	}
	req.URL.RawQuery = url.Values{"X-Amz-Expires": {strconv.Itoa(int(lifetime.Seconds()))}}.Encode()
	signed, _, err := b.signer.PresignHTTP(ctx, b.keys, req, unsigned, service, b.region, time.Now())
	return signed, err
}
