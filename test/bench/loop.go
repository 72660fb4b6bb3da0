package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"runpodctl-worker/test/child"
)

// fromEnv stands for the server that the environment names, as it does for any worker.
const fromEnv = "env"

// bareLoop is the least that a worker can do: take a job, post a result, in as many goroutines as wanted.
// It runs in a process of its own, as the workers do that it is compared with.
func bareLoop(base string, concurrency int) error {
	if base == fromEnv {
		u, err := url.Parse(os.Getenv("RUNPOD_WEBHOOK_GET_JOB"))
		if err != nil {
			return err
		}
		base = u.Scheme + "://" + u.Host
	}
	client := &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{MaxIdleConns: 2 * concurrency, MaxIdleConnsPerHost: 2 * concurrency},
	}
	errs := make([]error, concurrency)
	var all sync.WaitGroup
	for i := range concurrency {
		all.Go(func() {
			for errs[i] == nil {
				errs[i] = takeAndDone(client, base)
			}
		})
	}
	all.Wait()
	return errs[0]
}

func takeAndDone(client *http.Client, base string) error {
	job, err := call(client, http.MethodGet, base+"/v2/ep/job-take/w1?gpu=none&job_in_progress=0", "")
	if err != nil || job == "" { // a poll that was held for nothing
		return err
	}
	id, ok := strings.CutPrefix(job, `{"id":"`)
	if !ok {
		return fmt.Errorf("no job: %s", job)
	}
	id, _, _ = strings.Cut(id, `"`)
	_, err = call(client, http.MethodPost, base+"/v2/ep/job-done/w1/"+id+"?gpu=none&isStream=false", `{"output":1}`)
	return err
}

func call(client *http.Client, method, url, content string) (string, error) {
	req, err := http.NewRequest(method, url, strings.NewReader(content))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", os.Getenv("RUNPOD_AI_API_KEY"))
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// runBareLoop starts the loop as a child of the bench.
func (b *bench) runBareLoop(r *referee, concurrency int) (*child.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return b.start(nil, self, "-bare-loop", r.http.URL, "-concurrency", fmt.Sprint(concurrency))
}
