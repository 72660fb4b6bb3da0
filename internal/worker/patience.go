package worker

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"

	"runpodctl-worker/internal/protocol"
)

const (
	// A wrong key does not become right, but one that is being rotated does.
	maxDenials = 8
	// Some proxies cut the connection of a body that is too large for them instead of saying so. But so
	// does a platform that is being restarted, hence the number.
	maxResets = 12
	largeBody = 1 << 20
	// The page of a proxy that has lost the platform looks like a job that is not there.
	maxPages = 2
)

// patience decides how often one post is made.
type patience struct{ denials, resets, pages int }

// again tells whether a post of so many bytes is worth another try after this error.
func (p *patience) again(err error, size int) bool {
	var status *protocol.StatusError
	if !errors.As(err, &status) {
		if errors.Is(err, protocol.ErrNoURL) {
			return false
		}
		if size >= largeBody && isReset(err) {
			p.resets++
		}
		return p.resets < maxResets
	}
	p.resets = 0
	switch code := status.Code; {
	case code >= 500, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code == http.StatusTooEarly:
		return true
	case code == http.StatusNotFound:
		p.pages++
		return status.HTML && p.pages < maxPages
	case rejects(code), forgets(code):
		return false
	default: // 401, 403, and what the platform has no meaning for
		p.denials++
		return p.denials < maxDenials
	}
}

// errCut marks the error of a large post that was reset again and again.
var errCut = errors.New("the connection was cut every time")

// verdict is the last error of a post, marked where its size is what stopped it.
func (p *patience) verdict(err error) error {
	if p.resets >= maxResets {
		return fmt.Errorf("%w: %w", errCut, err)
	}
	return err
}

// refused tells whether the content of a post was the trouble, so that a smaller one may pass.
func refused(err error) bool {
	var status *protocol.StatusError
	return errors.Is(err, errCut) || errors.As(err, &status) && rejects(status.Code)
}

func rejects(code int) bool {
	return code == http.StatusBadRequest || code == http.StatusRequestEntityTooLarge
}

// unwelcome tells whether the platform has no use for what was posted.
func unwelcome(err error) bool {
	var status *protocol.StatusError
	return errors.As(err, &status) && (status.Code == http.StatusNotFound || forgets(status.Code))
}

func forgets(code int) bool {
	return code == http.StatusConflict || code == http.StatusGone || code == http.StatusUnprocessableEntity
}

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}
