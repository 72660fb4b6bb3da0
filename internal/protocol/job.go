package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Job is one unit of work as the platform handed it over.
type Job struct {
	ID      string          // the request id
	BatchID string          // set for jobs of the batch API; log lines carry it
	Raw     json.RawMessage // the whole object, unknown keys intact, always with an "input"
}

// ErrNoID says that an object handed out as a job names no id, so nothing can be posted for it.
var ErrNoID = errors.New(`job has no "id"`)

// ParseJob reads one job object. Only the keys that the worker itself needs are looked at;
// the handler gets Raw. An object without "input" gets an empty one: the hosted platform
// leaves the key out when a client submitted {}, and such a job must still have an end.
func ParseJob(raw []byte) (Job, error) {
	var fields map[string]part
	err := json.Unmarshal(raw, &fields)
	if err != nil {
		return Job{}, fmt.Errorf("job is not a JSON object: %w", err)
	}
	id, ok := fields["id"]
	if !ok {
		return Job{}, ErrNoID
	}
	job := Job{Raw: raw}
	if err := json.Unmarshal(id, &job.ID); err != nil || job.ID == "" {
		return Job{}, fmt.Errorf(`job "id" is not a non-empty string: %.100s`, id)
	}
	// A batchId of an unexpected type must not cost the job: it only decorates log lines.
	_ = json.Unmarshal(fields["batchId"], &job.BatchID)
	if _, ok := fields["input"]; !ok {
		job.Raw = withEmptyInput(raw)
	}
	return job, nil
}

// part is a value of a job as it lies there: an input may be large, and nobody here looks into it.
type part []byte

// UnmarshalJSON keeps no copy. The bytes are those of the job, which are not changed.
func (p *part) UnmarshalJSON(value []byte) error {
	*p = value
	return nil
}

// withEmptyInput adds "input":{} at the end of a non-empty JSON object.
func withEmptyInput(object []byte) json.RawMessage {
	end := bytes.LastIndexByte(object, '}')
	out := make([]byte, 0, end+len(`,"input":{}}`))
	out = append(out, object[:end]...)
	return append(out, `,"input":{}}`...)
}
