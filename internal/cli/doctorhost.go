package cli

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"runpodctl-worker/internal/checks"
)

// hostFacts say on which machine a report was made.
func hostFacts() []checks.Fact {
	var facts []checks.Fact
	if name, err := os.Hostname(); err == nil {
		facts = append(facts, checks.Fact{Name: "hostname", Value: name})
	}
	facts = append(facts, checks.Fact{Name: "system", Value: runtime.GOOS + "/" + runtime.GOARCH})
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		facts = append(facts, checks.Fact{Name: "kernel", Value: unix.ByteSliceToString(name.Release[:])})
	}
	return append(facts, checks.Fact{Name: "cpus", Value: runtime.NumCPU(), Text: fmt.Sprintf("%d CPUs", runtime.NumCPU())})
}
