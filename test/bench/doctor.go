package main

import (
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"runpodctl-worker/test/child"
)

// early is the checks before the handler exists, on a machine without a GPU: as a command, and as run logs them.
func (b *bench) early() ([]comparison, error) {
	const milliseconds = 50
	command := comparison{what: "doctor --json --phase early, wall", unit: "ms", bound: atMost(milliseconds), judged: byOurs}
	for range 5 * b.reps {
		wall, _, err := b.examine("--phase", "early")
		if err != nil {
			return nil, err
		}
		command.ours = append(command.ours, wall.Seconds()*1e3)
	}
	logged := comparison{what: "early checks of run, as logged", unit: "ms", bound: atMost(milliseconds), judged: byOurs}
	for range b.reps {
		took, err := b.loggedChecks()
		if err != nil {
			return nil, err
		}
		logged.ours = append(logged.ours, took)
	}
	return []comparison{command, logged}, nil
}

var passed = regexp.MustCompile(`All fitness checks passed\. \((\d+\.\d+)ms\)`)

// loggedChecks is what run says of its first pass.
func (b *bench) loggedChecks() (milliseconds float64, err error) {
	err = b.with(newReferee(`{}`, 1, 0), b.behind(), "noop.py", 1, func(p *child.Process) error {
		log, err := p.Output()
		if err != nil {
			return err
		}
		found := passed.FindSubmatch(log)
		if found == nil {
			return fmt.Errorf("no fitness check passed: %s", log)
		}
		milliseconds, err = strconv.ParseFloat(string(found[1]), 64)
		return err
	})
	return milliseconds, err
}

// doctor is all checks, with a server to connect to on this machine.
func (b *bench) doctor() ([]comparison, error) {
	line := func(what string) comparison {
		return comparison{what: "doctor --json, " + what, unit: "ms", bound: atMost(150), judged: byOurs}
	}
	server, err := net.Listen("tcp", "127.0.0.1:0") // to connect is all that is asked of it
	if err != nil {
		return nil, err
	}
	defer server.Close()
	elapsed, used := line("wall"), line("user + sys")
	for range 5 * b.reps {
		wall, cpu, err := b.examine("--target", server.Addr().String())
		if err != nil {
			return nil, err
		}
		elapsed.ours = append(elapsed.ours, wall.Seconds()*1e3)
		used.ours = append(used.ours, cpu.Seconds()*1e3)
	}
	return []comparison{elapsed, used}, nil
}

// examine runs the doctor once.
func (b *bench) examine(args ...string) (wall, cpu time.Duration, err error) {
	cmd := exec.Command(b.bin, append([]string{"doctor", "--json"}, args...)...)
	began := time.Now()
	report, err := cmd.Output()
	wall = time.Since(began)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w: %s", cmd, err, report)
	}
	return wall, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}
