package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"runpodctl-worker/test/child"
)

const clients = 16 // that submit and ask at a time

// faults are the ways in which a tenth of the worker's calls goes wrong.
var faults = []struct{ name, rule string }{
	{"answered 503", `"status":503`},
	{"answered 429 with Retry-After", `"status":429,"retryAfter":1`},
	{"reset before it was read", `"reset":"before"`},
	{"reset after it was acted on: the reply is lost", `"reset":"after"`},
	{"reply cut short", `"truncate":9`},
	{"stalled for 3 s", `"delay":"3s"`},
	{"stalled for 3 s, then the reply lost", `"delay":"3s","reset":"after"`},
}

// platform is a local Runpod that is not to be relied on.
type platform struct {
	*child.Process
	url    string
	client *http.Client
}

func startPlatform(o options, dir, retries string) (*platform, error) {
	var rules []string
	for _, f := range faults {
		rules = append(rules, fmt.Sprintf(`{"worker":%q,"probability":%.4f,%s}`, workerID, 0.1/float64(len(faults)), f.rule))
	}
	file := filepath.Join(dir, "faults.json")
	plan := fmt.Sprintf(`{"seed":%d,"rules":[%s]}`, o.seed, strings.Join(rules, ","))
	if err := os.WriteFile(file, []byte(plan), 0o600); err != nil {
		return nil, err
	}
	p, err := child.Start(dir, nil, o.bin, "serve", "--no-worker", "--port", "0", "--log-level", "warn",
		"--lease", lease, "--max-retries", retries, "--sweep-interval", "250ms", "--faults", file)
	if err != nil {
		return nil, err
	}
	url, err := p.URL()
	if err != nil {
		p.Stop()
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	return &platform{p, url, client}, nil
}

func (p *platform) call(method, path, body string, into any) error {
	req, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, resp.Status, raw)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// each does something for n numbers, for a few at a time.
func each(n int, do func(i int) error) error {
	var all sync.WaitGroup
	errs := make([]error, clients)
	for c := range clients {
		all.Go(func() {
			for i := c; i < n && errs[c] == nil; i += clients {
				errs[c] = do(i)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (p *platform) submit(todo []work, webhook string) ([]job, error) {
	jobs := make([]job, len(todo))
	return jobs, each(len(todo), func(i int) error {
		request, err := json.Marshal(map[string]any{"input": todo[i], "webhook": webhook})
		if err != nil {
			return err
		}
		var answer struct{ ID string }
		err = p.call(http.MethodPost, "/v2/local/run", string(request), &answer)
		jobs[i] = job{work: todo[i], id: answer.ID}
		return err
	})
}

// health is what the platform counts. Ends that it accepted, it counts for each.
type health struct {
	Jobs struct{ Completed, Failed, InProgress, InQueue int }
}

func (p *platform) health() (h health, err error) {
	err = p.call(http.MethodGet, "/v2/local/health", "", &h)
	return h, err
}

// awaitEnds waits until the platform says that every job has ended. ensure looks after the worker meanwhile.
func (p *platform) awaitEnds(o options, jobs int, ensure func() error) error {
	for end := time.Now().Add(o.limit); ; time.Sleep(time.Second) {
		h, err := p.health()
		switch {
		case err != nil:
			return err
		case h.Jobs.InProgress+h.Jobs.InQueue == 0 && h.Jobs.Completed+h.Jobs.Failed >= jobs:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("after %s there are jobs without an end: %+v", o.limit, h.Jobs)
		}
		if err := ensure(); err != nil {
			return err
		}
	}
}
