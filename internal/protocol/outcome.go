package protocol

import (
	"bytes"
	"encoding/json"
	"io"
)

// Outcome is what a handler made of a job. Whoever had it made drops it when it is needed no more.
type Outcome struct {
	Output  json.RawMessage // valid JSON; nil means that there is none, or that Spool has it
	Spool   Spool           // the output, where it is a large one; else nil
	Error   string          // not empty: the job FAILED, and this is why
	Refresh bool            // the handler asked for a fresh worker
	Stream  bool            // the handler was a generator
}

// Size is how many bytes the outcome has, without what a post puts around them.
func (o Outcome) Size() int64 {
	_, size := o.Content()
	return size + int64(len(o.Error))
}

// Content is the output, wherever it is, with its size.
func (o Outcome) Content() (output io.ReaderAt, size int64) {
	if o.Spool != nil {
		return o.Spool, o.Spool.Size()
	}
	return bytes.NewReader(o.Output), int64(len(o.Output))
}

// Drop gives up the file of a large output.
func (o Outcome) Drop() {
	if o.Spool != nil {
		_ = o.Spool.Close() // it was read, or nobody wants it
	}
}

// Body is the job-done body of the outcome. The platform accepts an error only as a JSON string.
func (o Outcome) Body(stopPod bool) Body {
	const key = `{"output":`
	tail := o.afterOutput(stopPod)
	switch {
	case o.Spool != nil, len(o.Output) >= LargeOutput:
		large, size := o.Content()
		return Body{head: []byte(key), large: large, size: size, tail: tail}
	case o.Output != nil:
		b := make([]byte, 0, len(key)+len(o.Output)+len(tail))
		b = append(b, key...)
		b = append(b, o.Output...)
		return Body{head: append(b, tail...)}
	case tail[0] == ',':
		tail[0] = '{'
		return Body{head: tail}
	default:
		return Body{head: []byte("{}")}
	}
}

// afterOutput is what follows the output in a body, with the comma before it.
func (o Outcome) afterOutput(stopPod bool) []byte {
	b := make([]byte, 0, 48)
	if o.Error != "" {
		b = append(b, `,"error":`...)
		b = append(b, Quote(o.Error)...)
	}
	if stopPod {
		b = append(b, `,"stopPod":true`...)
	}
	return append(b, '}')
}

// ErrorInfo is the error object that the Python SDK makes of an exception. Clients of the
// platform parse it, so its six keys are part of the protocol.
type ErrorInfo struct {
	Type      string `json:"error_type"`
	Message   string `json:"error_message"`
	Traceback string `json:"error_traceback"`
	Hostname  string `json:"hostname"`
	WorkerID  string `json:"worker_id"`
	Version   string `json:"runpod_version"`
}

// String is the object as the JSON text that goes into a job's "error".
func (e ErrorInfo) String() string {
	b, err := marshal(e)
	if err != nil { // six strings always encode
		return e.Message
	}
	return string(b)
}
