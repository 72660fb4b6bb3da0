package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	"runpodctl-worker/test/child"
)

const (
	connections = 16
	jobBody     = `{"input":{"n":1}}`
)

// visit runs a server and hands its address to use.
func visit(p *child.Process, err error, use func(url string) error) error {
	if err != nil {
		return err
	}
	defer p.Stop()
	url, err := p.URL()
	if err != nil {
		return err
	}
	if err := reachable(url); err != nil {
		return fmt.Errorf("%w: %s", err, p.Tail())
	}
	return use(url)
}

// reachable waits until somebody listens.
func reachable(url string) error {
	for end := time.Now().Add(child.Patience); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", url[len("http://"):])
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(end) {
			return err
		}
	}
}

func (b *bench) serve(args ...string) (*child.Process, error) {
	return b.start(nil, append([]string{b.bin, "serve", "--port", "0", "--log-level", "warn"}, args...)...)
}

// runSync is a job's whole way through the queue, a worker and its echo handler, beside the SDK's local API, which calls
// the handler without either.
func (b *bench) runSync() ([]comparison, error) {
	c := comparison{
		what: fmt.Sprintf("/runsync, %d connections", connections), unit: "answers/s",
		rival: "SDK's local API", bound: atLeast(1.5),
	}
	measure := func(into *samples, path string) func(string) error {
		return func(url string) error {
			got, err := rate(request{http.MethodPost, url + path, jobBody}, connections, time.Second, 3*time.Second)
			*into = append(*into, got)
			return err
		}
	}
	for range b.reps {
		p, err := b.serve("--handler", "echo", "--concurrency", fmt.Sprint(connections))
		if err := visit(p, err, measure(&c.ours, "/v2/local/runsync")); err != nil {
			return nil, err
		}
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		env := []string{"RUNPOD_LOG_LEVEL=WARN"}
		p, err = b.start(env, b.python, "-u", handler("noop.py"), "--rp_serve_api", "--rp_api_host", "127.0.0.1", "--rp_api_port", fmt.Sprint(port))
		if err != nil {
			return nil, err
		}
		_, err = fmt.Fprintf(p.Log, "http://127.0.0.1:%d\n", port) // it may not say so itself at this log level
		if err := visit(p, err, measure(&c.theirs, "/runsync")); err != nil {
			return nil, err
		}
	}
	return []comparison{c}, nil
}

// freePort is a port that nobody listens on now.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// api is the two routes that clients call most, beside a server of the same library that reads and writes the same
// JSON and does nothing. /run is measured without a worker, so that nothing else uses the machine; /status asks
// for a job that is done.
func (b *bench) api() ([]comparison, error) {
	bare, err := b.build("bareecho")
	if err != nil {
		return nil, err
	}
	line := func(route string) comparison {
		return comparison{
			what: fmt.Sprintf("%s, %d connections", route, connections), unit: "answers/s",
			rival: "bare echo, same JSON", bound: atLeast(0.7),
		}
	}
	run, status := line("/run"), line("/status")
	submit := func(into *samples) func(string) error {
		return func(url string) error {
			got, err := rate(request{http.MethodPost, url + "/v2/local/run", jobBody}, connections, time.Second, 3*time.Second)
			*into = append(*into, got)
			return err
		}
	}
	ask := func(into *samples) func(string) error {
		return func(url string) error {
			id, err := doneJob(url)
			if err != nil {
				return err
			}
			got, err := rate(request{http.MethodGet, url + "/v2/local/status/" + id, ""}, connections, time.Second, 3*time.Second)
			*into = append(*into, got)
			return err
		}
	}
	for range b.reps {
		p, err := b.serve("--no-worker")
		if err := visit(p, err, submit(&run.ours)); err != nil {
			return nil, err
		}
		p, err = b.serve("--handler", "echo")
		if err := visit(p, err, ask(&status.ours)); err != nil {
			return nil, err
		}
		p, err = b.start(nil, bare)
		err = visit(p, err, func(url string) error {
			if err := submit(&run.theirs)(url); err != nil {
				return err
			}
			return ask(&status.theirs)(url)
		})
		if err != nil {
			return nil, err
		}
	}
	return []comparison{run, status}, nil
}

// doneJob runs a job and returns its id once it is done.
func doneJob(url string) (string, error) {
	var job struct{ ID, Status string }
	resp, err := http.Post(url+"/v2/local/run", "application/json", bytes.NewReader([]byte(jobBody)))
	for end := time.Now().Add(child.Patience); err == nil; resp, err = http.Get(url + "/v2/local/status/" + job.ID) {
		err = json.NewDecoder(resp.Body).Decode(&job)
		resp.Body.Close()
		if err != nil || job.Status == "COMPLETED" {
			return job.ID, err
		}
		if time.Now().After(end) {
			return "", fmt.Errorf("%s is %s", job.ID, job.Status)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return "", err
}
