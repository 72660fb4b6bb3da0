package realtime

import (
	"bytes"
	"encoding/json"

	"runpodctl-worker/internal/protocol"
)

// fault says what is wrong with a part of a request, in the form of the official worker's server.
type fault struct {
	Type string   `json:"type"`
	Path []string `json:"loc"`
	Text string   `json:"msg"`
}

func missing(key string) fault { return fault{"missing", []string{"body", key}, "Field required"} }

// parseJob reads a request, whose id and input have to be there. The handler gets all of it.
func parseJob(body []byte) (protocol.Job, []fault) {
	if !json.Valid(body) {
		return protocol.Job{}, []fault{{"json_invalid", []string{"body"}, "JSON decode error"}}
	}
	fields, err := protocol.Fields(body)
	if err != nil || fields == nil {
		return protocol.Job{}, []fault{{"dict_type", []string{"body"}, "Input should be an object with id and input"}}
	}
	job := protocol.Job{Raw: body}
	var faults []fault
	switch id, ok := fields["id"]; {
	case !ok:
		faults = append(faults, missing("id"))
	case json.Unmarshal(id, &job.ID) != nil, job.ID == "":
		faults = append(faults, fault{"string_type", []string{"body", "id"}, "Input should be a string that is not empty"})
	}
	if input, ok := fields["input"]; !ok || bytes.Equal(input, []byte("null")) {
		faults = append(faults, missing("input"))
	}
	return job, faults
}

// refusal is the body of the answer to a request that is no job.
func refusal(faults []fault) []byte {
	body, err := json.Marshal(map[string]any{"detail": faults})
	if err != nil { // strings always encode
		return nil
	}
	return body
}
