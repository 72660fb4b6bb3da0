package gpu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/config"
)

// xid is what an error number of the kernel's driver means to a worker.
type xid struct {
	ids    []int
	text   string
	status checks.Status // Pass: an application's own fault, nothing to say about the GPU
}

// xids follow NVIDIA's catalogue and what its own monitoring acts upon. A number that is not listed warns.
var xids = []xid{
	{[]int{79}, "the GPU has fallen off the bus", checks.Fail},
	{[]int{48, 171, 172}, "a double-bit memory error", checks.Fail},
	{[]int{64}, "a bad memory row could not be recorded", checks.Fail},
	{[]int{74}, "an NVLink error", checks.Fail},
	{[]int{95}, "an uncontained memory error", checks.Fail},
	{[]int{119, 120}, "the GPU's own processor (GSP) does not answer", checks.Fail},
	{[]int{140}, "an unrecovered memory error", checks.Fail},
	{[]int{136, 143}, "the GPU or its link could not be initialised", checks.Fail},
	{[]int{46, 62, 158, 169}, "the GPU stopped", checks.Fail},
	{[]int{54}, "auxiliary power is not connected", checks.Fail},
	{[]int{110, 151, 167, 168}, "a security or link fault that needs a reset", checks.Fail},
	{[]int{157}, "a faulty resource could not be retired", checks.Fail},
	{[]int{156}, "a faulty resource was retired", checks.Fail},
	{[]int{144, 145, 146, 147, 148, 149, 150, 155}, "an NVLink 5 error", checks.Warn}, // its line may say that it is fatal
	{[]int{154}, "the GPU asks for a recovery", checks.Fail},
	{[]int{63}, "a bad memory row is to be replaced at the next reset", checks.Warn},
	{[]int{92, 93, 94, 121}, "a memory error that was corrected or contained", checks.Warn},
	{[]int{38, 44, 66, 67, 109}, "a fault of the driver or an application", checks.Warn},
	{[]int{
		8, 11, 13, 25, 31, 32, 39, 40, 41, 43, 45, 60, 68, 69, 70, 71, 72, 75, 76, 77, 80, 82, 83, 84, 85, 86, 88, 89,
		96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 137, 139, 141,
		160, 161,
	}, "an application's fault", checks.Pass},
}

// xidPolicy says what each Xid is to a worker.
type xidPolicy struct {
	fail, ignore []int
}

// newXIDPolicy reads the two lists, numbers with commas between them.
func newXIDPolicy(fail, ignore string) (xidPolicy, error) {
	var p xidPolicy
	var err error
	if p.fail, err = xidList(config.XIDFail, fail); err != nil {
		return xidPolicy{}, err
	}
	p.ignore, err = xidList(config.XIDIgnore, ignore)
	return p, err
}

func xidList(name, text string) ([]int, error) {
	var list []int
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s=%q: want numbers with commas between them", name, text)
		}
		list = append(list, n)
	}
	return list, nil
}

// xidEvent is one that happened.
type xidEvent struct {
	gpu  string // as people know it: "GPU 0"
	id   int
	line string // of the kernel's log, where it came from there
}

// judge says what an event is to a worker.
func (p xidPolicy) judge(e xidEvent) (finding, bool) {
	known := xid{text: "an error that this program does not know", status: checks.Warn}
	for _, x := range xids {
		if slices.Contains(x.ids, e.id) {
			known = x
		}
	}
	switch {
	case e.id >= 144 && e.id <= 155 && strings.Contains(e.line, " Fatal "):
		known.status = checks.Fail
	case e.id == 154 && strings.HasSuffix(e.line, "(None)"): // nothing is asked for any more
		known.status = checks.Pass
	}
	switch {
	case slices.Contains(p.ignore, e.id):
		known.status = checks.Pass
	case slices.Contains(p.fail, e.id):
		known.status = checks.Fail
	}
	if known.status == checks.Pass {
		return finding{}, false
	}
	return finding{
		status: known.status, unit: e.gpu, text: fmt.Sprintf("Xid %d: %s", e.id, known.text),
		remedy: remedyUnknown + " " + config.XIDIgnore + " names numbers that are to be ignored.",
	}, true
}

// judgeAll judges each number once for a GPU.
func (p xidPolicy) judgeAll(events []xidEvent) []finding {
	var found []finding
	for _, e := range events {
		if f, bad := p.judge(e); bad && !slices.Contains(found, f) {
			found = append(found, f)
		}
	}
	return found
}
