package test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// jobRecords are the lines that serve has kept of a job.
func jobRecords(t *testing.T, dir, id string) []record {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, id+".jsonl"))
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(text), "\n"), "the last line is whole")
	var all []record
	for line := range strings.Lines(string(text)) {
		var r record
		require.NoError(t, json.Unmarshal([]byte(line), &r), line)
		all = append(all, r)
	}
	return all
}

// LG-06: each job has a file with its own lines, those of the handler and those about it, and only these.
func TestLG06JobLogs(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		jobs  int // at a time, in each worker
		flags []string
	}{
		"jobs side by side":    {jobs: 6, flags: []string{"--concurrency", "6"}},
		"workers side by side": {jobs: 1, flags: []string{"--workers", "3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const jobs, prints = 6, 20
			dir := filepath.Join(t.TempDir(), "new", "logs")
			p := start(t, command{
				args: append([]string{
					binary(t), "serve", "--port", "0", "--log-dir", dir, "--python", python(t), "--handler", handler(t, "chatty_async.py"),
				}, row.flags...),
				env: []string{"CONCURRENCY_MODIFIER=" + strconv.Itoa(row.jobs)},
			})
			eventually(t, func() bool { return listening.MatchString(p.stderr.String()) }, "no address")
			e := endpoint{t: t, base: listening.FindString(p.stderr.String()) + "/v2"}
			var ids []string
			for range jobs {
				ids = append(ids, e.run(fmt.Sprintf(`{"jobs":%d,"prints":%d}`, row.jobs, prints)))
			}
			for _, id := range ids {
				require.Contains(t, e.await(id).Error, "as told")
			}
			p.signal(t, syscall.SIGTERM)
			require.Zero(t, p.wait(t))
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, entries, jobs)
			for _, id := range ids {
				said, own := 0, map[string]int{}
				for _, r := range jobRecords(t, dir, id) {
					require.Equal(t, id, *r.RequestID)
					if who, _, ok := strings.Cut(r.Message, " says "); ok {
						require.Equal(t, id, who)
						said++
					}
					own[r.Message]++
				}
				require.Equal(t, 3*prints, said)
				require.Equal(t, 1, own["Started."])
				require.Equal(t, 1, own["Captured Handler Exception"])
			}
			// The terminal shows what is printed as it was, and names the job of what is logged.
			printed := regexp.MustCompile(`(?m)^\S+ says \d+$`).FindAllString(p.stdout.String()+p.stderr.String(), -1)
			require.Len(t, printed, 2*jobs*prints)
			logged := regexp.MustCompile(`(?m)^INFO   \| (\S+) \| \S+ says \d+$`).FindAllString(p.stdout.String(), -1)
			require.Len(t, logged, jobs*prints)
			require.NotContains(t, p.stdout.String(), "requestId")
		})
	}
}

// LG-06: a job that runs can be followed, line by line, to its end.
func TestLG06FollowAJob(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	s := serveHandler(t, "steps.py", "--log-dir", t.TempDir())
	id := s.run(fmt.Sprintf(`{"gate":%q,"steps":3}`, gate))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url()+"/_emulator/logs/"+id+"?follow=1", http.NoBody)
	require.NoError(t, err)
	resp, err := httpClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	var messages []string
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		var r record
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		require.Equal(t, id, *r.RequestID)
		if r.Message != "Finished." { // the worker's, when the platform has the result
			messages = append(messages, r.Message)
		}
		if step, ok := strings.CutPrefix(r.Message, "step "); ok { // it goes on when we have seen this
			require.NoError(t, os.WriteFile(gate+step, nil, 0o600))
		}
	}
	require.Equal(t, []string{"Started.", "step 0", "step 1", "step 2", "the last"}, messages)
	require.Equal(t, "COMPLETED", s.await(id).Status)
}

// A disk that is full costs lines, with one warning, and no job.
func TestLG06FullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const prints = 3000 // much more than what a file may have
	p := start(t, command{
		args: []string{
			"sh", "-c", `ulimit -f 64; exec "$@"`, "sh",
			binary(t), "serve", "--port", "0", "--log-dir", dir, "--python", python(t), "--handler", handler(t, "chatty_async.py"),
		},
		env: []string{"CONCURRENCY_MODIFIER=1"},
	})
	eventually(t, func() bool { return listening.MatchString(p.stderr.String()) }, "no address")
	e := endpoint{t: t, base: listening.FindString(p.stderr.String()) + "/v2"}
	for range 2 {
		id := e.run(fmt.Sprintf(`{"jobs":1,"prints":%d}`, prints))
		require.Contains(t, e.await(id).Error, "as told")
		require.NotEmpty(t, jobRecords(t, dir, id), "whole lines, as far as there was room")
	}
	p.signal(t, syscall.SIGTERM)
	require.Zero(t, p.wait(t))
	require.Equal(t, 1, strings.Count(p.stderr.String(), "Lines of jobs are missing"), tail(p.stderr))
	require.Len(t, regexp.MustCompile(`(?m)^\S+ says \d+$`).FindAllString(p.stdout.String()+p.stderr.String(), -1), 2*2*prints)
}
