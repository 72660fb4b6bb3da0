package server

import (
	"bytes"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"unicode/utf8"

	"runpodctl-worker/internal/protocol"
)

// maxDrain bounds what is read of a body that is refused anyway. Without draining it the connection
// is reset, and the sender sees that instead of the refusal.
const maxDrain = 64 << 20

// WriteJSON answers with a body that is JSON already.
func WriteJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header()["Content-Type"] = jsonType
	w.WriteHeader(status)
	_, _ = w.Write(body) // a reader that has gone needs no answer
}

var jsonType = []string{"application/json"}

// WriteProblem answers with the hosted API's error body.
func WriteProblem(w http.ResponseWriter, status int, detail string) {
	WriteJSON(w, status, protocol.NewProblem(status, detail).JSON())
}

// Authorize reports whether a request carries the key, and answers 401 when it does not. Clients send
// "Bearer <key>", workers the bare key; both are accepted from both. An empty key admits everyone.
func Authorize(w http.ResponseWriter, r *http.Request, key string) bool {
	if key == "" {
		return true
	}
	token := strings.TrimSpace(r.Header.Get("Authorization"))
	if scheme, rest, ok := strings.Cut(token, " "); ok && strings.EqualFold(scheme, "Bearer") {
		token = strings.TrimSpace(rest)
	}
	switch {
	case token == "":
		WriteProblem(w, http.StatusUnauthorized, "no token provided")
	case subtle.ConstantTimeCompare([]byte(token), []byte(key)) != 1:
		WriteProblem(w, http.StatusUnauthorized, "invalid api key")
	default:
		return true
	}
	return false
}

// ReadBody reads the body of a request that must be valid UTF-8 JSON of at most limit bytes. It looks
// at no content type: the official worker posts JSON as a form. A refusal is a protocol.BadRequestError,
// any other error means that the sender has gone.
func ReadBody(r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLarge(r.Body, limit)
	}
	body, err := readAll(r, limit)
	if err != nil {
		return nil, fmt.Errorf("reading the body: %w", err)
	}
	if int64(len(body)) > limit {
		return nil, tooLarge(r.Body, limit)
	}
	if !utf8.Valid(body) {
		body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	}
	return body, nil
}

// firstRead is the memory that an announced length alone, before its bytes, can claim.
const firstRead = 1 << 20

// readAll reads a body, and one byte more than limit if there are so many.
func readAll(r *http.Request, limit int64) ([]byte, error) {
	if length := r.ContentLength; length > 0 && length <= firstRead {
		body := make([]byte, length)
		_, err := io.ReadFull(r.Body, body)
		return body, err
	}
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), firstRead)))
	n, err := body.ReadFrom(io.LimitReader(r.Body, min(limit, math.MaxInt64-1)+1))
	if err == nil && n < r.ContentLength {
		err = io.ErrUnexpectedEOF
	}
	return body.Bytes(), err
}

// Decode reads a body into v. A refusal is a protocol.BadRequestError that names the field.
func Decode(body []byte, v any) error {
	err := json.Unmarshal(body, v)
	var mismatch *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mismatch) && mismatch.Field != "":
		return protocol.BadRequestError(mismatch.Field + ": cannot be a JSON " + mismatch.Value)
	case errors.As(err, &mismatch):
		return protocol.BadRequestError("body: cannot be a JSON " + mismatch.Value)
	default:
		return protocol.BadRequestError("body: " + err.Error())
	}
}

func tooLarge(rest io.Reader, limit int64) error {
	_, _ = io.CopyN(io.Discard, rest, maxDrain)
	size := fmt.Sprintf("%dB", limit)
	switch {
	case limit%(1<<20) == 0:
		size = fmt.Sprintf("%dMiB", limit>>20)
	case limit%1_000_000 == 0:
		size = fmt.Sprintf("%dMB", limit/1_000_000)
	}
	return protocol.BadRequestError("body: exceeded max body size of " + size)
}

// WriteError answers with what an error means to the caller, and reports whether it meant anything:
// false is a fault of ours, answered 500, which the caller of WriteError should log.
func WriteError(w http.ResponseWriter, err error) bool {
	var bad protocol.BadRequestError
	switch {
	case errors.As(err, &bad):
		WriteProblem(w, http.StatusBadRequest, bad.Error())
	case errors.Is(err, protocol.ErrUnknownJob):
		WriteProblem(w, http.StatusNotFound, protocol.ErrUnknownJob.Error())
	// To a worker a job that is no longer its own is as gone as one that was deleted: nothing
	// that it could post again would be accepted. The detail tells people which it was.
	case errors.Is(err, protocol.ErrJobSettled):
		WriteProblem(w, http.StatusNotFound, protocol.ErrJobSettled.Error())
	case errors.Is(err, protocol.ErrNotHolder):
		WriteProblem(w, http.StatusNotFound, protocol.ErrNotHolder.Error())
	default:
		WriteProblem(w, http.StatusInternalServerError, "internal error")
		return false
	}
	return true
}
