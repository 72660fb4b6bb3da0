package server

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseTarget(t *testing.T) {
	for name, row := range map[string]struct {
		path string
		want target
		ok   bool
	}{
		"take":                     {"/job-take/w1", target{"job-take", "w1", "", ""}, true},
		"literal worker":           {"/job-take/$RUNPOD_POD_ID", target{"job-take", "$RUNPOD_POD_ID", "", ""}, true},
		"template without ?":       {"/job-take/$RUNPOD_POD_ID&job_in_progress=0", target{"job-take", "$RUNPOD_POD_ID", "", "job_in_progress=0"}, true},
		"batch without ?":          {"/job-take-batch/w1&batch_size=4&job_in_progress=1", target{"job-take-batch", "w1", "", "batch_size=4&job_in_progress=1"}, true},
		"done without ?":           {"/job-done/w1/j1&isStream=true", target{"job-done", "w1", "j1", "isStream=true"}, true},
		"done":                     {"/job-done/w1/j1", target{"job-done", "w1", "j1", ""}, true},
		"stream":                   {"/job-stream/w1/j1", target{"job-stream", "w1", "j1", ""}, true},
		"stop":                     {"/job-stop/w1", target{"job-stop", "w1", "", ""}, true},
		"ping":                     {"/ping/w1", target{"ping", "w1", "", ""}, true},
		"escaped":                  {"/job-done/w%2F1/j%201", target{"job-done", "w/1", "j 1", ""}, true},
		"trailing slash":           {"/job-take/w1/", target{"job-take", "w1", "", ""}, true},
		"parameter with a slash":   {"/job-take/w1&gpu=a/b", target{"job-take", "w1", "", "gpu=a/b"}, true},
		"no worker":                {"/job-take/", target{}, false},
		"done without a job":       {"/job-done/w1", target{}, false},
		"too long":                 {"/job-done/w1/j1/x", target{}, false},
		"take with a job":          {"/job-take/w1/j1", target{}, false},
		"unknown call":             {"/job-give/w1", target{}, false},
		"nothing":                  {"", target{}, false},
		"broken escape, worker":    {"/job-take/%zz", target{}, false},
		"broken escape, job":       {"/job-done/w1/%zz", target{}, false},
		"only parameters, no path": {"&a=b", target{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := parseTarget(row.path)
			require.Equal(t, row.ok, ok)
			require.Equal(t, row.want, got)
		})
	}
}

func TestWithoutPrefix(t *testing.T) {
	for path, want := range map[string]string{
		"/job-take/w1":                             "/job-take/w1",
		"/v2/ep/job-take/w1&job_in_progress=0":     "/job-take/w1&job_in_progress=0",
		"/v2/ep/job-done/w1/j1":                    "/job-done/w1/j1",
		"/some/where/else/job-stream/w1/j1":        "/job-stream/w1/j1",
		"/v2/ping/ping/w1":                         "/ping/w1",
		"/v2/job-take/job-stop/w1":                 "/job-stop/w1",
		"/v2/ep/job-take/w1&template=/a/job-stop/": "/job-take/w1&template=/a/job-stop/",
		"/v2/ep/run":                               "/v2/ep/run",
		"/":                                        "/",
		"":                                         "",
	} {
		require.Equal(t, want, withoutPrefix(path), path)
	}
}

func TestParam(t *testing.T) {
	tgt := target{extra: "batch_size=4&gpu=in+path"}
	query := "gpu=NVIDIA+GeForce&empty=&job_id=a%2Cb,c&bad=%zz&gpu=second"
	for name, want := range map[string]string{
		"gpu": "NVIDIA GeForce", "empty": "", "job_id": "a,b,c", "bad": "%zz", "batch_size": "4", "absent": "",
	} {
		require.Equal(t, want, tgt.param(query, name), name)
	}
}

func FuzzParseTarget(f *testing.F) {
	f.Add("/v2/ep", "job-take", "w1", "j1", "job_in_progress=0")
	f.Add("", "job-done", "$RUNPOD_POD_ID", "a/b", "isStream=true")
	f.Add("/ping/job-done", "ping", "%zz", "", "&&=")
	f.Fuzz(func(t *testing.T, prefix, call, worker, job, params string) {
		parseTarget(withoutPrefix(prefix + call + worker + job + params)) // anything: no panic
		if segments[call] == 0 || worker == "" || job == "" || strings.ContainsAny(prefix+worker+job, "&") {
			return
		}
		path := "/" + call + "/" + url.PathEscape(worker)
		if segments[call] == 2 {
			path += "/" + url.PathEscape(job)
		}
		got, ok := parseTarget(path + "&" + params)
		require.True(t, ok)
		require.Equal(t, call, got.call)
		require.Equal(t, worker, got.worker)
		require.Equal(t, params, got.extra)
		if segments[call] == 2 {
			require.Equal(t, job, got.job)
		}
	})
}
