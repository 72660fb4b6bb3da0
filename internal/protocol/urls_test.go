package protocol

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTemplates(t *testing.T) {
	production := Templates{
		GetJob:     "https://h/v2/ep/job-take/$ID?gpu=RTX+4090",
		PostOutput: "https://h/v2/ep/job-done/$RUNPOD_POD_ID/$ID?gpu=RTX+4090",
		PostStream: "https://h/v2/ep/job-stream/$RUNPOD_POD_ID/$ID?gpu=RTX+4090",
		Ping:       "https://h/v2/ep/ping/$RUNPOD_POD_ID?gpu=RTX+4090",
	}
	bare := Templates{
		GetJob:     "http://h/v2/IDE/job-take/$RUNPOD_POD_ID",
		PostOutput: "http://h/v2/IDE/job-done/$RUNPOD_POD_ID/$ID?",
		PostStream: "http://h/v2/IDE/job-stream/$RUNPOD_POD_ID/$ID?",
		Ping:       "http://h/v2/IDE/ping/$RUNPOD_POD_ID",
	}
	tests := []struct {
		name, got, want string
	}{
		{"one job, idle", production.Take("w1", 1, false), "https://h/v2/ep/job-take/w1?gpu=RTX+4090&job_in_progress=0"},
		{"several jobs, busy", production.Take("w1", 4, true), "https://h/v2/ep/job-take-batch/w1?gpu=RTX+4090&batch_size=4&job_in_progress=1"},
		{"take without a query in the template", bare.Take("w1", 2, false), "http://h/v2/IDE/job-take-batch/w1?batch_size=2&job_in_progress=0"},
		{"stop", production.Stop("w1"), "https://h/v2/ep/job-stop/w1?gpu=RTX+4090"},
		{"stop of a template that has no such form", Templates{GetJob: "http://h/take/$ID"}.Stop("w1"), ""},
		{"done", production.Done("w1", "j-u1", true), "https://h/v2/ep/job-done/w1/j-u1?gpu=RTX+4090&isStream=true"},
		{"done with a bare question mark", bare.Done("w1", "j-u1", false), "http://h/v2/IDE/job-done/w1/j-u1?isStream=false"},
		{"stream", bare.Stream("w1", "j-u1"), "http://h/v2/IDE/job-stream/w1/j-u1?isStream=false"},
		{"no stream URL", Templates{}.Stream("w1", "j"), ""},
		{"idle ping", production.Heartbeat("w1", nil), "https://h/v2/ep/ping/w1?gpu=RTX+4090&runpod_version=" + SDKVersion},
		{"busy ping", bare.Heartbeat("w1", []string{"a", "b"}), "http://h/v2/IDE/ping/w1?job_id=a,b&runpod_version=" + SDKVersion},
		{"no ping URL", Templates{}.Heartbeat("w1", nil), ""},
		{"an id that needs escaping", production.Done("w1", "a/b?c", false), "https://h/v2/ep/job-done/w1/a%2Fb%3Fc?gpu=RTX+4090&isStream=false"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, tt.got)
		})
	}
}

func TestHeartbeat_CutsTheListBetweenTwoIDs(t *testing.T) {
	ids := make([]string, 4000)
	for i := range ids {
		ids[i] = strings.Repeat("x", 36)
	}
	u, err := url.Parse(Templates{Ping: "http://h/ping"}.Heartbeat("w", ids))
	require.NoError(t, err)
	list := u.Query().Get("job_id")
	require.LessOrEqual(t, len(list), MaxPingIDs)
	require.Greater(t, len(list), MaxPingIDs-40)
	for id := range strings.SplitSeq(list, ",") {
		require.Len(t, id, 36)
	}
}
