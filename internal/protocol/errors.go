package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// StatusError is an answer that refuses a call.
type StatusError struct {
	Call       string        // "job-take", "job-done", …
	Code       int           // the HTTP status
	RetryAfter time.Duration // from the Retry-After header; 0 when absent
	HTML       bool          // the body is a page of some proxy, not the platform's word
	Body       string        // the first few hundred bytes, for messages
}

func (e *StatusError) Error() string {
	msg := fmt.Sprintf("%s: the platform answered %d %s", e.Call, e.Code, http.StatusText(e.Code))
	if e.Body != "" && !e.HTML {
		msg += ": " + e.Body
	}
	return msg
}

// DecodeError is an answer that could not be understood, whatever its status.
type DecodeError struct {
	Call string
	Err  error
}

func (e *DecodeError) Error() string { return e.Call + ": answer not understood: " + e.Err.Error() }
func (e *DecodeError) Unwrap() error { return e.Err }

// ResetError is a connection that broke while the call was on its way, after it had been made.
type ResetError struct {
	Call string
	Err  error
}

func (e *ResetError) Error() string { return e.Call + ": " + e.Err.Error() }
func (e *ResetError) Unwrap() error { return e.Err }

// ErrNoURL says that the platform gave no URL for a call, so that nothing was sent. Missing URLs are normal:
// the Hub's test runner gives neither a ping nor a stream URL.
var ErrNoURL = errors.New("the platform gave no URL for this call")

// ErrNotBegun says that a handler's program ended before it had the job, so that the job had no part in that end.
var ErrNotBegun = errors.New("the program never had the job")

// What a Backend can say about a job that a worker reports on.
var (
	ErrUnknownJob = errors.New("job not found")              // 404: never existed, expired or deleted
	ErrJobSettled = errors.New("job has already ended")      // the reply came late or twice
	ErrNotHolder  = errors.New("job is with another worker") // it was redelivered meanwhile
)

// BadRequestError is a refusal of the caller's data; its text is for the caller.
type BadRequestError string

func (e BadRequestError) Error() string { return "bad request: " + string(e) }

// Problem is the error body of the hosted API.
type Problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

// NewProblem fills in the title that belongs to a status.
func NewProblem(status int, detail string) Problem {
	return Problem{Status: status, Title: http.StatusText(status), Detail: detail}
}

// JSON is the problem as it goes over the wire.
func (p Problem) JSON() []byte {
	b, err := json.Marshal(p)
	if err != nil { // an int and two strings always encode
		return nil
	}
	return b
}
