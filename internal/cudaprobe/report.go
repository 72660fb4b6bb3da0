package cudaprobe

import (
	"errors"

	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/internal/cudaprobe/cuda"
	"runpodctl-worker/internal/cudaprobe/dynlib"
)

// report tells the parent what is done.
type report struct{ *wire.Report }

// skipped is the reason why something is not asked here.
type skipped struct{ error }

func (s skipped) Unwrap() error { return s.error }

// step announces a step, does it and reports what came of it. It tells whether to go on.
func (r report) step(step wire.Step, gpu int, do func() (any, error)) bool {
	running := r.Begin(step, gpu)
	if r.Err() != nil {
		return false // nobody would know what hangs
	}
	data, err := do()
	outcome := explain(err)
	outcome.Data = data
	running.Done(outcome)
	return outcome.State != wire.StateFail && r.Err() == nil
}

// explain says in what way a step ended.
func explain(err error) wire.Outcome {
	if err == nil {
		return wire.Outcome{State: wire.StateOK}
	}
	o := wire.Outcome{State: wire.StateFail, Detail: err.Error()}
	if _, ok := errors.AsType[skipped](err); ok {
		o.State = wire.StateSkip
	}
	if refused, ok := errors.AsType[cuda.Error](err); ok {
		o.Call, o.Code, o.Detail = refused.Call, refused.Code, refused.Name
	}
	if missing, ok := errors.AsType[dynlib.SymbolError](err); ok {
		o.Call = missing.Symbol
	}
	if _, ok := errors.AsType[dynlib.MissingError](err); ok {
		o.Code = wire.CodeNoLibrary
	}
	return o
}
