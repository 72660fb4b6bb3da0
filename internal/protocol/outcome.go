package protocol

import (
	"encoding/json"
)

// Outcome is what a handler made of a job.
type Outcome struct {
	Output  json.RawMessage // valid JSON; nil means that there is none
	Error   string          // not empty: the job FAILED, and this is why
	Refresh bool            // the handler asked for a fresh worker
	Stream  bool            // the handler was a generator
}

// Body is the job-done body of the outcome. The platform accepts an error only as a JSON string.
func (o Outcome) Body(stopPod bool) []byte {
	errText := ""
	if o.Error != "" {
		errText = string(Quote(o.Error))
	}
	b := make([]byte, 0, len(o.Output)+len(errText)+48)
	b = append(b, '{')
	if o.Output != nil {
		b = append(b, `"output":`...)
		b = append(b, o.Output...)
		b = append(b, ',')
	}
	if errText != "" {
		b = append(b, `"error":`...)
		b = append(b, errText...)
		b = append(b, ',')
	}
	if stopPod {
		b = append(b, `"stopPod":true,`...)
	}
	if b[len(b)-1] == ',' {
		b = b[:len(b)-1]
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
