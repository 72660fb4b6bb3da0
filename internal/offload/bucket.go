// Package offload keeps outputs that are too large for the platform in a bucket of S3-compatible storage, where clients fetch
// them by a signed URL.
package offload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/cenkalti/backoff/v5"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/redact"
)

// How long an upload may take. A try has a limit that grows with its size, as a post to the platform has.
const (
	maxTries       = 4
	retryBudget    = 5 * time.Minute // no try begins later
	firstRetry     = 500 * time.Millisecond
	longestRetry   = 10 * time.Second
	tryLimit       = time.Minute
	bytesPerSecond = 128 << 10
	connectLimit   = 10 * time.Second
)

// contentType is what every output is.
const contentType = "application/json"

// Bucket is a place in the storage. It is safe for concurrent use.
type Bucket struct {
	root    *url.URL
	region  string
	keys    aws.Credentials
	signer  *v4.Signer
	client  *http.Client
	secrets *redact.Secrets

	tryLimit, firstRetry time.Duration
}

// New returns the Bucket that the environment names. Nothing is sent before the first upload.
func New(cfg config.Bucket) *Bucket {
	return &Bucket{
		root:   cfg.Endpoint,
		region: region(cfg.Endpoint.Hostname(), cfg.Region),
		keys:   aws.Credentials{AccessKeyID: cfg.AccessKeyID, SecretAccessKey: cfg.SecretAccessKey},
		signer: v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }), // as S3 wants it, unlike its sisters
		client: &http.Client{
			// Uploads are so rare that a connection kept for the next one would be dead by then.
			Transport: &http.Transport{
				Proxy:       http.ProxyFromEnvironment,
				DialContext: (&net.Dialer{Timeout: connectLimit}).DialContext, TLSHandshakeTimeout: connectLimit,
				ForceAttemptHTTP2: true, DisableKeepAlives: true, ExpectContinueTimeout: time.Second,
			},
			// A signature holds for one host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		secrets:  redact.New(cfg.AccessKeyID, cfg.SecretAccessKey),
		tryLimit: tryLimit, firstRetry: firstRetry,
	}
}

// Offload stores the output of a job, and returns the small one that says where it is. The same output of the same job goes
// to the same place. The errors hold no keys.
func (b *Bucket) Offload(ctx context.Context, job string, output io.ReaderAt, size int64) (json.RawMessage, error) {
	small, err := b.offload(ctx, job, output, size)
	return small, b.secrets.Error(err)
}

func (b *Bucket) offload(ctx context.Context, job string, output io.ReaderAt, size int64) (json.RawMessage, error) {
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(output, 0, size)); err != nil {
		return nil, fmt.Errorf("read the output: %w", err)
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	o := object{url: b.place(job, sum, time.Now()), content: output, size: size, sum: sum}
	pace := &backoff.ExponentialBackOff{InitialInterval: b.firstRetry, MaxInterval: longestRetry, Multiplier: 2, RandomizationFactor: 0.25}
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, b.put(ctx, o) },
		backoff.WithMaxTries(maxTries), backoff.WithMaxElapsedTime(retryBudget), backoff.WithBackOff(pace))
	if err != nil {
		return nil, err
	}
	signed, err := b.sign(ctx, o.url)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"offloaded":{"url":%s,"size":%d,"content_type":"%s","sha256":"%s"}}`, protocol.Quote(signed), size, contentType, sum), nil
}
