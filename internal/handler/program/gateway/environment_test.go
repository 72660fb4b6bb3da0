package gateway

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Path, query and placeholders of the platform's URLs are not for us to change.
func TestEnvironment(t *testing.T) {
	const getJob, postOutput, ping = "RUNPOD_WEBHOOK_GET_JOB", "RUNPOD_WEBHOOK_POST_OUTPUT", "RUNPOD_WEBHOOK_PING"
	for _, tt := range []struct {
		name           string
		env            map[string]string
		variable, want string // where %s is this gateway
	}{
		{"hosted take", nil, getJob, "http://%s/v2/ep/job-take/$ID?gpu=L4"},
		{"hosted result", nil, postOutput, "http://%s/v2/ep/job-done/$RUNPOD_POD_ID/$ID?gpu=L4"},
		{"hosted ping", nil, ping, "http://%s/v2/ep/ping/$RUNPOD_POD_ID?gpu=L4"},
		{"without a query", map[string]string{getJob: "http://0.0.0.0:80/v2/IDE/job-take/$RUNPOD_POD_ID"}, getJob, "http://%s/v2/IDE/job-take/$RUNPOD_POD_ID"},
		{"a bare question mark", map[string]string{getJob: "https://h/job-take/$ID?"}, getJob, "http://%s/job-take/$ID?"},
		{"with a password", map[string]string{getJob: "https://u:p@h:1/v2/x/job-take/$ID"}, getJob, "http://%s/v2/x/job-take/$ID"},
		{"encoded", map[string]string{getJob: "https://h/a%2Fb/job-take/$ID?g=%20$X"}, getJob, "http://%s/a%2Fb/job-take/$ID?g=%20$X"},
		{"another platform's path", map[string]string{getJob: "https://h/next?worker=$ID"}, getJob, "http://%s/job-take/$ID"},
		{"no path", map[string]string{getJob: "https://h"}, getJob, "http://%s/job-take/$ID"},
		{"no URL of this kind", map[string]string{ping: ""}, ping, ""},
		{"checks of the SDK's", nil, "RUNPOD_SKIP_GPU_CHECK", "true"},
		{"checks of the system", nil, "RUNPOD_SKIP_AUTO_SYSTEM_CHECKS", "true"},
		{"checks of the user's", nil, "RUNPOD_SKIP_FITNESS_CHECKS", ""},
		{"no proxy", nil, "no_proxy", ""},
		{"a proxy", map[string]string{"HTTP_PROXY": "http://p"}, "no_proxy", "127.0.0.1"},
		{"a proxy with exceptions", map[string]string{"http_proxy": "http://p", "NO_PROXY": "a,b"}, "NO_PROXY", "a,b,127.0.0.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := New(Options{Lookup: environment(tt.env)})
			g.addr = "127.0.0.1:1234"
			got := ""
			for _, entry := range g.Environment() {
				if name, value, _ := strings.Cut(entry, "="); name == tt.variable {
					got = value
				}
			}
			require.Equal(t, strings.Replace(tt.want, "%s", g.addr, 1), got)
		})
	}
	t.Run("no platform", func(t *testing.T) {
		require.Nil(t, New(Options{Lookup: environment(map[string]string{getJob: ""})}))
	})
}

func FuzzLocal(f *testing.F) {
	f.Add("https://api.runpod.ai/v2/ep/job-take/$ID?gpu=NVIDIA+L4")
	f.Add("http://0.0.0.0:80")
	f.Add("://?/job-take/")
	f.Fuzz(func(t *testing.T, url string) {
		got := local(url, "/job-take/", "/job-take/$ID")
		require.Contains(t, got, "/job-take/")
		require.Contains(t, "/?#", got[:1], "it follows a host")
		if got != "/job-take/$ID" {
			require.True(t, strings.HasSuffix(url, got), "nothing of it is changed")
		}
	})
}
