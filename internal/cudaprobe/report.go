package cudaprobe

import (
	"encoding/json"
	"errors"
	"io"
	"time"

	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/internal/cudaprobe/cuda"
	"runpodctl-worker/internal/cudaprobe/dynlib"
)

// report tells the parent what is done. After a failed write it only keeps the error.
type report struct {
	to  io.Writer
	err error
}

// skipped is the reason why something is not asked here.
type skipped struct{ error }

func (s skipped) Unwrap() error { return s.error }

// step announces a step, does it and reports what came of it. It tells whether to go on.
func (r *report) step(step wire.Step, gpu int, do func() (any, error)) bool {
	r.write(wire.Line{Step: step, State: wire.StateBegin, GPU: gpu})
	if r.err != nil {
		return false // nobody would know what hangs
	}
	began := time.Now()
	data, err := do()
	line := wire.Line{
		Step: step, State: wire.StateOK, GPU: gpu, MS: float64(time.Since(began).Microseconds()) / 1000,
	}
	if data != nil {
		var broken error
		line.Data, broken = json.Marshal(data)
		r.err = errors.Join(r.err, broken)
	}
	if err != nil {
		explain(&line, err)
	}
	r.write(line)
	return line.State != wire.StateFail && r.err == nil
}

// explain makes the line of a step that did not go well.
func explain(line *wire.Line, err error) {
	line.State, line.Detail = wire.StateFail, err.Error()
	if _, ok := errors.AsType[skipped](err); ok {
		line.State = wire.StateSkip
	}
	if refused, ok := errors.AsType[cuda.Error](err); ok {
		line.Call, line.Code, line.Detail = refused.Call, refused.Code, refused.Name
	}
	if missing, ok := errors.AsType[dynlib.SymbolError](err); ok {
		line.Call = missing.Symbol
	}
	if _, ok := errors.AsType[dynlib.MissingError](err); ok {
		line.Code = wire.CodeNoLibrary
	}
}

// end is the last line.
func (r *report) end() error {
	r.write(wire.Line{State: wire.StateEnd, GPU: wire.NoGPU})
	return r.err
}

func (r *report) write(line wire.Line) {
	if r.err == nil {
		r.err = json.NewEncoder(r.to).Encode(line)
	}
}
