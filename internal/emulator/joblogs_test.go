package emulator_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/emulator"
	"runpodctl-worker/internal/joblog"
)

func newJobLogs(t *testing.T) *joblog.Dir {
	t.Helper()
	logs, err := joblog.Open(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, logs.Close()) })
	return logs
}

func TestJobLog(t *testing.T) {
	logs := newJobLogs(t)
	r := newRig(t, emulator.Options{JobLogs: logs, Endpoints: []string{"local", "other"}})
	job := idOf(t, r.ok("POST", "/v2/other/run", `{"input":1}`))
	require.NoError(t, logs.Append("old", []byte("{\"old\":1}\n")))
	require.NoError(t, logs.Append("../old", []byte("{\"up\":1}\n")))
	for _, tt := range []struct {
		name, path string
		code       int
		text       string
	}{
		{"nothing yet", job, 200, ""},
		{"a job that is gone", "old", 200, "{\"old\":1}\n"},
		{"nothing more of it comes", "old?follow=1", 200, "{\"old\":1}\n"},
		{"an odd id", "..%2Fold", 200, "{\"up\":1}\n"},
		{"unknown", "unknown", 404, "not found"},
		{"unknown, to follow", "unknown?follow=true", 404, "not found"},
		{"a way out", "..%2F..%2F..%2Fetc%2Fpasswd", 404, "not found"},
		{"a file beside the lines", "%2Fetc%2Fpasswd", 404, "not found"},
		{"neither yes nor no", job + "?follow=maybe", 400, "follow: not true or false"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, text := r.call("GET", "/_emulator/logs/"+tt.path, "")
			require.Equal(t, tt.code, code, text)
			if code == http.StatusOK {
				require.Equal(t, tt.text, text)
			} else {
				require.Contains(t, text, tt.text)
			}
		})
	}
}

func TestJobLog_IsNotKept(t *testing.T) {
	r := newRig(t, emulator.Options{})
	code, text := r.call("GET", "/_emulator/logs/"+r.run(`{"input":1}`), "")
	require.Equal(t, http.StatusNotFound, code)
	require.Contains(t, text, "--log-dir DIR")
}

func TestJobLog_ThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	logs, err := joblog.Open(dir)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.jsonl"), 0o700))
	r := newRig(t, emulator.Options{JobLogs: logs})
	code, _ := r.call("GET", "/_emulator/logs/folder", "")
	require.Equal(t, http.StatusInternalServerError, code)
	require.NoError(t, logs.Close())
}

// follower reads the lines of a job over a connection as they come.
type follower struct {
	*bufio.Scanner
	t     *testing.T
	leave context.CancelFunc
}

func follow(t *testing.T, url, job string) *follower {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	t.Cleanup(leave)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/_emulator/logs/"+job+"?follow=1", http.NoBody)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "application/x-ndjson", res.Header.Get("Content-Type"))
	return &follower{bufio.NewScanner(res.Body), t, leave}
}

func (f *follower) next(want string) {
	f.t.Helper()
	require.True(f.t, f.Scan(), f.Err())
	require.Equal(f.t, want, f.Text())
}

func (f *follower) ends() {
	f.t.Helper()
	require.False(f.t, f.Scan(), f.Text())
	require.NoError(f.t, f.Err())
}

// liveRig is an Emulator behind a listener.
func liveRig(t *testing.T) (*rig, *joblog.Dir, string) {
	t.Helper()
	logs := newJobLogs(t)
	r := newRig(t, emulator.Options{JobLogs: logs})
	server := httptest.NewServer(r.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return r, logs, server.URL
}

// LG-06: whoever follows a job sees each line when it comes, and the end of the job ends it.
func TestLG06Follow(t *testing.T) {
	for name, end := range map[string]func(*rig, string){
		"done":      func(r *rig, job string) { require.Equal(t, http.StatusOK, r.done("w1", job, `{"output":1}`)) },
		"cancelled": func(r *rig, job string) { r.ok("POST", "/v2/local/cancel/"+job, "") },
		"closed":    func(r *rig, _ string) { require.NoError(t, r.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			r, logs, url := liveRig(t)
			job := r.run(`{"input":1}`)
			f := follow(t, url, job)
			again := follow(t, url, job)
			require.Equal(t, job, r.take("w1"))
			for _, line := range []string{"1", "2", "3"} {
				require.NoError(t, logs.Append("beside", []byte("other\n")))
				require.NoError(t, logs.Append(job, []byte(line+"\n")))
				f.next(line)
				again.next(line)
			}
			end(r, job)
			require.NoError(t, logs.Append(job, []byte("last\n")))
			f.next("last")
			f.ends()
			again.next("last")
			again.ends()
		})
	}
}

func TestLG06Follow_AfterTheEnd(t *testing.T) {
	r, logs, url := liveRig(t)
	job := r.run(`{"input":1}`)
	require.NoError(t, logs.Append(job, []byte("1\n")))
	r.ok("POST", "/v2/local/cancel/"+job, "")
	f := follow(t, url, job)
	f.next("1")
	f.ends()
}

// A reader that leaves costs nothing: the leak check of this package would find what is left of it.
func TestLG06Follow_ReaderLeaves(t *testing.T) {
	r, logs, url := liveRig(t)
	job := r.run(`{"input":1}`)
	f := follow(t, url, job)
	require.NoError(t, logs.Append(job, []byte("1\n")))
	f.next("1")
	f.leave()
	require.False(t, f.Scan())
}
