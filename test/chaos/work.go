package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"

	"runpodctl-worker/internal/protocol"
)

// work is the input of a job: see test/handlers/chaos.py.
type work struct {
	N       int     `json:"n"`
	Seconds float64 `json:"seconds"`
	Items   int     `json:"items"` // of its stream; 0: it has none
	Pad     int     `json:"pad"`   // bytes of its output
	Fails   bool    `json:"fails"`
}

// anyWork is a job of one of several kinds.
func anyWork(n int, random *rand.Rand) work {
	w := work{N: n}
	switch random.IntN(10) {
	case 0, 1, 2:
		w.Seconds = random.Float64() / 10
	case 3, 4:
		w.Seconds = random.Float64() * 2
	case 5, 6, 7:
		w.Items = 1 + random.IntN(30)
	case 8:
		w.Pad = 10_000 + random.IntN(1_000_000) // with a file of its own, but for the smallest
	case 9:
		w.Fails = true
	}
	return w
}

// output is what a job must come to.
func (w work) output() any {
	if w.Items == 0 {
		return map[string]any{"n": float64(w.N), "pad": strings.Repeat("x", w.Pad)}
	}
	items := []any{}
	for i := range w.Items {
		items = append(items, map[string]any{"n": float64(w.N), "item": float64(i)})
	}
	return items
}

// Reasons for which a job that was not meant to fail may do so, once what ran it was killed.
var reasons = []string{"the program ended (killed by SIGKILL", "worker died while running this job"}

// job is a job that the platform has accepted.
type job struct {
	work
	id   string
	runs int // how often it was begun, as far as anybody counts
}

// state is what the platform says of a job.
type state struct {
	Status  protocol.Status
	Retries int
	Output  json.RawMessage
	Error   json.RawMessage
}

// judge tells what is wrong with the end of a job.
func (j job) judge(s state) error {
	switch {
	case s.Status == protocol.Completed && j.Fails:
		return fmt.Errorf("job %d is COMPLETED and was meant to fail", j.N)
	case s.Status == protocol.Completed:
		var output any
		if err := json.Unmarshal(s.Output, &output); err != nil || !reflect.DeepEqual(output, j.output()) {
			return fmt.Errorf("job %d has another result than its own: %.200s", j.N, s.Output)
		}
		return nil
	case s.Status != protocol.Failed:
		return fmt.Errorf("job %d has no end of its own: it is %s", j.N, s.Status)
	case j.Fails && strings.Contains(string(s.Error), fmt.Sprintf("meant to fail: %d", j.N)):
		return nil
	}
	for _, reason := range reasons {
		if j.runs > 0 && strings.Contains(string(s.Error), reason) {
			return nil
		}
	}
	return fmt.Errorf("job %d is FAILED for no good reason, after it was begun %d times: %.500s", j.N, j.runs, s.Error)
}
