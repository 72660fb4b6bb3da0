package realtime

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzParseJob(f *testing.F) {
	for _, seed := range []string{`{"id":"a","input":1}`, `{"id":1}`, `[]`, `null`, ``, `{"id":"a","input":null}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		job, faults := parseJob(body)
		if len(faults) > 0 {
			require.True(t, json.Valid(refusal(faults)))
			return
		}
		var back struct {
			Input any `json:"input"`
		}
		require.NotEmpty(t, job.ID)
		require.NoError(t, json.Unmarshal(job.Raw, &back))
	})
}
