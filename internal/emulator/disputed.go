package emulator

import (
	"fmt"
	"strings"

	"runpodctl-worker/internal/emulator/store"
)

// Disputed is what reports about the hosted platform disagree on, or what it does and nobody wants. The zero
// value is the best guess at the platform of today.
type Disputed struct {
	KeepEmptyInput    bool // hand the input {} to workers; hosted, such a job comes without its input
	ExecutionTimesOut bool // see store.Policy
	SilenceTimesOut   bool
	TTLTimesOut       bool
	LateProgress      bool
	RefusedCompletes  bool // a result that is refused for its form ends its job, COMPLETED with nothing
}

// dispute is one switch: what people call it and its two positions, of which the first is the default.
type dispute struct {
	name   string
	values [2]string
	field  func(*Disputed) *bool
}

var disputes = []dispute{
	{"empty-input", [2]string{"omit", "keep"}, func(d *Disputed) *bool { return &d.KeepEmptyInput }},
	{"execution-timeout", [2]string{"FAILED", "TIMED_OUT"}, func(d *Disputed) *bool { return &d.ExecutionTimesOut }},
	{"lost-worker", [2]string{"FAILED", "TIMED_OUT"}, func(d *Disputed) *bool { return &d.SilenceTimesOut }},
	{"ttl", [2]string{"delete", "TIMED_OUT"}, func(d *Disputed) *bool { return &d.TTLTimesOut }},
	{"late-progress", [2]string{"ignore", "overwrite"}, func(d *Disputed) *bool { return &d.LateProgress }},
	{"refused-result", [2]string{"redeliver", "complete"}, func(d *Disputed) *bool { return &d.RefusedCompletes }},
}

// Set moves one switch, as "name=value".
func (d *Disputed) Set(text string) error {
	name, value, _ := strings.Cut(text, "=")
	var names []string
	for _, dispute := range disputes {
		if dispute.name == name {
			return dispute.set(d, value)
		}
		names = append(names, dispute.name)
	}
	return fmt.Errorf("%q is none of %s", name, strings.Join(names, ", "))
}

func (s dispute) set(d *Disputed, value string) error {
	for position, known := range s.values {
		if strings.EqualFold(known, value) {
			*s.field(d) = position == 1
			return nil
		}
	}
	return fmt.Errorf("%s: %q is neither %s nor %s", s.name, value, s.values[0], s.values[1])
}

// policy is a job's policy with the switches in it.
func (d Disputed) policy(p store.Policy) store.Policy {
	p.ExecutionTimesOut, p.SilenceTimesOut, p.TTLTimesOut = d.ExecutionTimesOut, d.SilenceTimesOut, d.TTLTimesOut
	p.LateProgress = d.LateProgress
	return p
}
