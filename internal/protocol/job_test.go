package protocol

import (
	"encoding/json"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseJob(t *testing.T) {
	tests := []struct {
		name, raw string
		want      Job
		wantErr   string
	}{
		{name: "the least", raw: `{"id":"a","input":{}}`, want: Job{ID: "a", Raw: json.RawMessage(`{"id":"a","input":{}}`)}},
		{name: "unknown keys stay", raw: `{"x-new":{"a":1},"input":null,"id":"a","batchId":"b"}`, want: Job{ID: "a", BatchID: "b", Raw: json.RawMessage(`{"x-new":{"a":1},"input":null,"id":"a","batchId":"b"}`)}},
		{name: "no input becomes an empty one", raw: `{"id":"a"}`, want: Job{ID: "a", Raw: json.RawMessage(`{"id":"a","input":{}}`)}},
		{name: "no input, space at the end", raw: "{\"id\":\"a\" }\n", want: Job{ID: "a", Raw: json.RawMessage(`{"id":"a" ,"input":{}}`)}},
		{name: "a batch id of another type", raw: `{"id":"a","input":1,"batchId":7}`, want: Job{ID: "a", Raw: json.RawMessage(`{"id":"a","input":1,"batchId":7}`)}},
		{name: "keys count as they are written", raw: `{"id":"a","ID":"b","Input":1}`, want: Job{ID: "a", Raw: json.RawMessage(`{"id":"a","ID":"b","Input":1,"input":{}}`)}},
		{name: "no id", raw: `{"input":{}}`, wantErr: `job has no "id"`},
		{name: "an id that is no string", raw: `{"id":7,"input":{}}`, wantErr: `not a non-empty string: 7`},
		{name: "an empty id", raw: `{"id":"","input":{}}`, wantErr: `not a non-empty string`},
		{name: "null", raw: `null`, wantErr: `no "id"`},
		{name: "a list", raw: `[]`, wantErr: "not a JSON object"},
		{name: "cut off", raw: `{"id":"a","inp`, wantErr: "not a JSON object"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseJob([]byte(tt.raw))
			if tt.wantErr != "" {
				require.ErrorContains(t, err, tt.wantErr)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

// The input, which may be large, is not copied.
func TestParseJob_TakesNoMemory(t *testing.T) {
	raw := []byte(`{"id":"a","batchId":"b","input":"` + strings.Repeat("x", 8<<20) + `"}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	job, err := ParseJob(raw)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Equal(t, "a", job.ID)
	require.Equal(t, "b", job.BatchID)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

func FuzzParseJob(f *testing.F) {
	for _, seed := range []string{`{"id":"a","input":{}}`, `{"id":"a"}`, `{"id":"a","batchId":[]}`, `[{"id":"a"}]`, `{}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		job, err := ParseJob(raw)
		if err != nil {
			return
		}
		var fields map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(job.Raw, &fields), "what goes to the handler is JSON")
		require.NotEmpty(t, job.ID)
	})
}

func TestOutcome_Body(t *testing.T) {
	large := `"` + strings.Repeat("x", LargeOutput) + `"`
	tests := []struct {
		name    string
		outcome Outcome
		stopPod bool
		want    string
	}{
		{"an output", Outcome{Output: json.RawMessage(`{"a":"<é>"}`)}, false, `{"output":{"a":"<é>"}}`},
		{"null is an output", Outcome{Output: json.RawMessage(`null`)}, false, `{"output":null}`},
		{"nothing", Outcome{}, false, `{}`},
		{"an error", Outcome{Error: "a \"quoted\" <b>\xff"}, false, `{"error":"a \"quoted\" <b>\ufffd"}`},
		{"both and a fresh worker", Outcome{Output: json.RawMessage(`1`), Error: "x"}, true, `{"output":1,"error":"x","stopPod":true}`},
		{"only a fresh worker", Outcome{}, true, `{"stopPod":true}`},
		{"a large output", Outcome{Output: json.RawMessage(large)}, false, `{"output":` + large + `}`},
		{"a large one with all else", Outcome{Output: json.RawMessage(large), Error: "x"}, true, `{"output":` + large + `,"error":"x","stopPod":true}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := tt.outcome.Body(tt.stopPod)
			for range 2 { // it can be sent again
				got, err := io.ReadAll(body.Open())
				require.NoError(t, err)
				require.Equal(t, tt.want, string(got))
				require.Equal(t, int64(len(got)), body.Size())
			}
		})
	}
}

func TestErrorInfo_HasTheKeysOfTheSDK(t *testing.T) {
	var keys map[string]string
	require.NoError(t, json.Unmarshal([]byte(ErrorInfo{Type: "<class 'ValueError'>"}.String()), &keys))
	require.Equal(t, map[string]string{
		"error_type": "<class 'ValueError'>", "error_message": "", "error_traceback": "",
		"hostname": "", "worker_id": "", "runpod_version": "",
	}, keys)
}
