// Package fault makes calls to the emulator go wrong on purpose, by rules that can be repeated. Without
// rules it costs a call one atomic load.
package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Plan is a list of rules as a file or a request gives it.
type Plan struct {
	Seed  *uint64 // of the rules' chances; nil: a random one
	Rules []Rule
}

// Rule says which calls go wrong, how often, and how. What it does not name, it does not look at.
type Rule struct {
	Route       string  `json:"route,omitempty"` // the call's name, such as job-done
	Worker      string  `json:"worker,omitempty"`
	Job         string  `json:"job,omitempty"`
	Probability float64 `json:"probability,omitempty"` // where it is absent, Parse makes it 1
	Times       int     `json:"times,omitempty"`       // 0 is no limit

	Delay       Delay  `json:"delay,omitzero"`        // before anything else
	Status      int    `json:"status,omitempty"`      // the answer, in place of the emulator's own
	Body        string `json:"body,omitempty"`        // its body; empty: the hosted error body
	RetryAfter  int    `json:"retryAfter,omitempty"`  // its Retry-After, in seconds
	ContentType string `json:"contentType,omitempty"` // its content type; without a status, that of the emulator's own answer
	Reset       string `json:"reset,omitempty"`       // the connection, Before or After the emulator has acted
	Truncate    *int   `json:"truncate,omitempty"`    // the answer's body after so many bytes, and break the connection
	Duplicate   bool   `json:"duplicate,omitempty"`   // hand a job that is taken out to the next who asks, too
}

// Values of Rule.Reset. After loses the reply: the emulator has done what it was asked.
const (
	Before = "before"
	After  = "after"
)

// Delay is a duration, in JSON a text such as "1.5s".
type Delay time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Delay) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return delayError(text)
	}
	*d = Delay(parsed)
	return nil
}

type delayError string

func (e delayError) Error() string {
	return fmt.Sprintf("delay: %q is not a time such as 1.5s", string(e))
}

// MarshalText implements encoding.TextMarshaler.
func (d Delay) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// takeRoute is the name of both forms of job-take.
const takeRoute = "job-take"

// routes are the calls that a rule can name.
var routes = []string{
	"run", "runsync", "status", "status-sync", "stream", "cancel", "retry", "purge-queue", "health", "requests", "batch", "openai",
	takeRoute, "job-done", "job-stream", "job-stop", "ping",
}

// Parse reads a plan in JSON: {"seed": 7, "rules": [{…}, …]}. Its error names the field that makes no sense.
func Parse(data []byte) (Plan, error) {
	var raw struct {
		Seed  *uint64           `json:"seed"`
		Rules []json.RawMessage `json:"rules"`
	}
	if err := decode(data, &raw); err != nil {
		return Plan{}, err
	}
	plan := Plan{Seed: raw.Seed, Rules: make([]Rule, len(raw.Rules))}
	if len(raw.Rules) == 0 {
		return Plan{}, errors.New("rules: there is none")
	}
	for i, text := range raw.Rules {
		plan.Rules[i].Probability = 1
		err := decode(text, &plan.Rules[i])
		if err == nil {
			err = plan.Rules[i].check()
		}
		if err != nil {
			return Plan{}, fmt.Errorf("rules[%d].%w", i, err)
		}
	}
	return plan, nil
}

// decode is strict: a misspelt field would make a rule that never fires, or always.
func decode(data []byte, v any) error {
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if err == nil && dec.More() {
		return errors.New("body: more than one JSON document")
	}
	if bad, ok := errors.AsType[delayError](err); ok {
		return bad
	}
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s: cannot be a JSON %s", mismatch.Field, mismatch.Value)
	}
	if err != nil {
		const unknown = "json: unknown field "
		if field, ok := strings.CutPrefix(err.Error(), unknown); ok {
			return fmt.Errorf("%s: there is no such field", strings.Trim(field, `"`))
		}
		return fmt.Errorf("body: %w", err)
	}
	return nil
}

// check reports the first field that makes no sense.
func (r *Rule) check() error {
	switch {
	case r.Route != "" && !slices.Contains(routes, r.Route):
		return fmt.Errorf("route: %q is none of %s", r.Route, strings.Join(routes, ", "))
	case r.Probability <= 0 || r.Probability > 1:
		return fmt.Errorf("probability: want more than 0 and at most 1, not %v", r.Probability)
	case r.Times < 0:
		return fmt.Errorf("times: want a number of calls, or 0 for no limit, not %d", r.Times)
	case r.Delay < 0:
		return errors.New("delay: want no negative time")
	case r.Status != 0 && (r.Status < 200 || r.Status > 599):
		return fmt.Errorf("status: want 200 to 599, not %d", r.Status)
	case r.Body != "" && r.Status == 0:
		return errors.New("body: goes with a status")
	case r.RetryAfter != 0 && (r.Status == 0 || r.RetryAfter < 0):
		return errors.New("retryAfter: goes with a status, and is a number of seconds")
	case r.Reset != "" && r.Reset != Before && r.Reset != After:
		return fmt.Errorf("reset: want %s or %s, not %q", Before, After, r.Reset)
	case r.Truncate != nil && *r.Truncate < 0:
		return fmt.Errorf("truncate: want a number of bytes, not %d", *r.Truncate)
	case r.Duplicate && r.Delay > 0:
		return errors.New("delay: does not go together with duplicate, which changes what a take hands out and not when")
	case r.Duplicate && r.Route != "" && r.Route != takeRoute:
		return fmt.Errorf("duplicate: only %s hands jobs out, not %s", takeRoute, r.Route)
	}
	return r.checkAction()
}

// checkAction holds that a rule does something, and one thing only beside a delay.
func (r *Rule) checkAction() error {
	var named []string
	for name, set := range map[string]bool{
		"status": r.Status != 0, "reset": r.Reset != "", "truncate": r.Truncate != nil, "duplicate": r.Duplicate,
		"contentType": r.ContentType != "" && r.Status == 0,
	} {
		if set {
			named = append(named, name)
		}
	}
	slices.Sort(named)
	switch {
	case len(named) > 1:
		return fmt.Errorf("%s: does not go together with %s", named[1], named[0])
	case len(named) == 0 && r.Delay == 0:
		return errors.New("status: or one of reset, truncate, contentType, duplicate and delay is missing")
	}
	return nil
}
