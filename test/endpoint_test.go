package test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// endpoint is the public API of a server, by plain HTTP.
type endpoint struct {
	t    *testing.T
	base string // as clients are given it, with /v2
}

// job is a job as the API shows it.
type job struct {
	ID            string          `json:"id"`
	Status        string          `json:"status"`
	Output        json.RawMessage `json:"output"`
	Error         string          `json:"error"`
	Stream        []chunk         `json:"stream"`
	WorkerID      string          `json:"workerId"`
	DelayTime     *int            `json:"delayTime"`
	ExecutionTime *int            `json:"executionTime"`
}

type chunk struct {
	Output json.RawMessage `json:"output"`
}

// items are the chunks as strings, for handlers that yield strings.
func (j job) items(t *testing.T) []string {
	t.Helper()
	items := []string{}
	for _, c := range j.Stream {
		var item string
		require.NoError(t, json.Unmarshal(c.Output, &item))
		items = append(items, item)
	}
	return items
}

func (j job) over() bool { return j.Status != "IN_QUEUE" && j.Status != "IN_PROGRESS" }

var httpClient = &http.Client{Timeout: 2 * patience}

// call makes one request and demands that it is answered 200.
func (e endpoint) call(method, path, body string, into any) {
	e.t.Helper()
	require.NoError(e.t, e.try(method, path, body, into), "%s %s", method, path)
}

// try is call for goroutines beside the test's own, which must not end the test.
func (e endpoint) try(method, path, body string, into any) error {
	req, err := http.NewRequestWithContext(e.t.Context(), method, e.base+"/local"+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer any")
	resp, err := httpClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("answered %s: %s", resp.Status, answer)
	}
	return json.Unmarshal(answer, into)
}

// run submits input, given as JSON, and returns the id of the job.
func (e endpoint) run(input string) string {
	e.t.Helper()
	var j job
	e.call(http.MethodPost, "/run", `{"input":`+input+`}`, &j)
	require.Equal(e.t, "IN_QUEUE", j.Status)
	require.NotEmpty(e.t, j.ID)
	return j.ID
}

func (e endpoint) runSync(input string) job {
	e.t.Helper()
	j, err := e.tryRunSync(input)
	require.NoError(e.t, err)
	return j
}

func (e endpoint) tryRunSync(input string) (j job, err error) {
	err = e.try(http.MethodPost, "/runsync?wait=60000", `{"input":`+input+`}`, &j)
	return j, err
}

func (e endpoint) status(id string) job {
	e.t.Helper()
	var j job
	e.call(http.MethodGet, "/status/"+id, "", &j)
	require.Equal(e.t, id, j.ID)
	return j
}

// await polls until the job has ended.
func (e endpoint) await(id string) job {
	e.t.Helper()
	for deadline := time.Now().Add(2 * patience); ; time.Sleep(20 * time.Millisecond) {
		if j := e.status(id); j.over() || time.Now().After(deadline) {
			require.True(e.t, j.over(), "%s is still %s", id, j.Status)
			return j
		}
	}
}

// stream reads what the job has yielded since the last read.
func (e endpoint) stream(id string) job {
	e.t.Helper()
	var j job
	e.call(http.MethodGet, "/stream/"+id+"?wait=1000", "", &j)
	return j
}

// streamAll reads to the end.
func (e endpoint) streamAll(id string) job {
	e.t.Helper()
	all := []chunk{}
	for deadline := time.Now().Add(2 * patience); ; {
		j := e.stream(id)
		all = append(all, j.Stream...)
		if j.over() || time.Now().After(deadline) {
			require.True(e.t, j.over(), "%s is still %s", id, j.Status)
			j.Stream = all
			return j
		}
	}
}

// health is the health report of an endpoint.
type health struct {
	Jobs struct {
		Completed  int `json:"completed"`
		Failed     int `json:"failed"`
		InProgress int `json:"inProgress"`
		InQueue    int `json:"inQueue"`
	} `json:"jobs"`
	Workers map[string]int `json:"workers"`
}

func (e endpoint) health() health {
	e.t.Helper()
	h, err := e.tryHealth()
	require.NoError(e.t, err)
	return h
}

func (e endpoint) tryHealth() (h health, err error) {
	err = e.try(http.MethodGet, "/health", "", &h)
	return h, err
}
