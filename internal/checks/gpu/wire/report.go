package wire

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Report is a helper's end of the wire.
type Report struct {
	mu  sync.Mutex
	out *json.Encoder
	err error // the first that happened: the parent is gone
}

// NewReport reports to out.
func NewReport(out io.Writer) *Report { return &Report{out: json.NewEncoder(out)} }

// OpenReport reports on the descriptor that the parent handed over. What the driver starts does not inherit it.
func OpenReport() (*Report, error) {
	// What was handed over survives an exec; what the Go runtime opened itself under that number would not.
	flags, err := unix.FcntlInt(ReportFD, unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC != 0 {
		return nil, errors.New("nobody listens on descriptor 3: this program is started by runpodctl-worker")
	}
	unix.CloseOnExec(ReportFD)
	return NewReport(os.NewFile(ReportFD, "report")), nil
}

// Send reports one line.
func (r *Report) Send(l Line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = r.out.Encode(l)
	}
}

// End says that all has been reported, and tells whether it could be.
func (r *Report) End() error {
	r.Send(Line{State: StateEnd, GPU: NoGPU})
	return r.Err()
}

// Err is why nobody hears the report any more; nil while somebody does.
func (r *Report) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Begin announces a step.
func (r *Report) Begin(step Step, gpu int) *Running {
	r.Send(Line{Step: step, State: StateBegin, GPU: gpu})
	return &Running{report: r, step: step, gpu: gpu, began: time.Now()}
}

// Running is a step that has begun. One call of Done ends it.
type Running struct {
	report *Report
	step   Step
	gpu    int
	began  time.Time
}

// Outcome is how a step ended; Data is what it found, or nil.
type Outcome struct {
	State  State
	Call   string
	Code   int
	Detail string
	Data   any
}

// Done reports how the step ended.
func (s *Running) Done(o Outcome) {
	line := Line{
		Step: s.step, State: o.State, GPU: s.gpu, Call: o.Call, Code: o.Code, Detail: o.Detail,
		MS: float64(time.Since(s.began).Microseconds()) / 1000,
	}
	if o.Data != nil {
		data, err := json.Marshal(o.Data)
		if err != nil { // a number that JSON cannot say: the step has no verdict
			line.State, line.Detail = StateFail, err.Error()
		}
		line.Data = data
	}
	s.report.Send(line)
}
