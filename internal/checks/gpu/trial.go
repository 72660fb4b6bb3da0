package gpu

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/wire"
)

// sideBySide is how many helpers may test at once: each holds host memory, and a driver that starts is busy.
const sideBySide = 4

// trial is one test of a unit, by a helper that sees nothing but it.
type trial struct {
	unit  unit
	lines []wire.Line
	err   error
}

// try tests units side by side. What one of them does to its helper concerns no other.
func (d *Driver) try(ctx context.Context, s *survey, units []unit, mode ...string) []trial {
	trials := make([]trial, len(units))
	d.parallel(len(units), func(i int) {
		u := units[i]
		lines, err := d.helpers.ask(ctx, question{
			helper: CUDAHelper, args: append(slices.Clip(mode), "--gpu", u.uuid), environ: helperEnviron(s.environ, u.uuid, ""),
		})
		trials[i] = trial{u, lines, err}
	})
	return trials
}

func (d *Driver) parallel(n int, do func(i int)) {
	places := make(chan struct{}, sideBySide)
	var all sync.WaitGroup
	for i := range n {
		places <- struct{}{}
		all.Go(func() {
			do(i)
			<-places
		})
	}
	all.Wait()
}

// findings is what speaks against the unit. After the first failure a driver answers nothing of use in that process.
func (t trial) findings() []finding {
	line, broken := failedLine(t.lines)
	switch {
	case broken:
		return []finding{t.broken(line)}
	case t.err != nil:
		return []finding{trouble(t.unit.name, t.err)}
	}
	return nil
}

// broken is the finding for a step that failed, with what the step itself brought to light.
func (t trial) broken(line wire.Line) finding {
	f := failed(t.unit.name, line)
	memory, _ := data[wire.Memory](t.lines, wire.CUDAContext)
	test, _ := data[wire.MemoryTest](t.lines, wire.CUDAMemory)
	filled, _ := data[wire.FillTest](t.lines, wire.CUDAFill)
	product, _ := data[wire.Compute](t.lines, wire.CUDACompute)
	switch {
	case line.Code == cudaOutOfMemory && memory.Total > 0:
		want := test.Bytes
		if line.Step == wire.CUDAFill {
			want = filled.Bytes
		}
		if want > 0 {
			f.text = fmt.Sprintf("cannot allocate %s", size(want))
		}
		f.text += fmt.Sprintf(" (free %d of %d MiB)", memory.Free>>20, memory.Total>>20)
	case line.Step == wire.CUDAMemory && test.BadWords > 0:
		f.text = fmt.Sprintf("memory read back differs: %d of %d words (%d bits), first at byte %#x: wrote %#08x, read %#08x",
			test.BadWords, test.Bytes/4*uint64(max(test.Passes, 1)), test.BadBits, test.FirstBad, test.Want, test.Got)
		f.remedy = remedyCorrupt
	case line.Step == wire.CUDAFill && filled.BadWords > 0:
		f.text = fmt.Sprintf("memory does not hold what was written: %d words of %s", filled.BadWords, size(filled.Bytes))
		f.remedy = remedyCorrupt
	case line.Step == wire.CUDACompute && product.Wrong:
		f.text = fmt.Sprintf("wrong result: c[%d][%d] = %s, want %g", product.Row, product.Col, product.Got, product.Want)
		f.remedy = "Silent data corruption: take the machine out of service."
	case line.Code == cudaJITDisabled:
		f.status = checks.Skip
	}
	return f
}

const remedyCorrupt = "Faulty memory or PCIe link: drain the machine, run dcgmi diag -r 3, reset the GPU. Have it replaced if it comes back."

// testable are the units to test, or what stands in the way of all of them. A fabric that is not ready gets what is
// left of the time to become so.
func (d *Driver) testable(ctx context.Context, p *pass, s *survey) ([]unit, []finding, *survey) {
	for s.cuda.failure != nil && s.cuda.failure.Code == cudaNotReady {
		select {
		case <-ctx.Done():
			return nil, s.unusable(), s
		case <-time.After(fabricTime):
		}
		again := d.relist(ctx, p, s)
		if silent(again.cuda.err) {
			return nil, s.unusable(), s // the time was over in the middle: what was said before is the answer
		}
		s = again
	}
	if found := s.unusable(); len(found) > 0 {
		return nil, found, s
	}
	return s.units(d.chosen()), nil, s
}

// busy says what a unit that works but is taken means: while the model is loaded it may well be.
func (d *Driver) busy(found []finding, phase checks.Phase) []finding {
	switch {
	case phase == checks.Start && d.options.EarlyPassed != nil && d.options.EarlyPassed():
		return ease(found, checks.Skip)
	case phase == checks.Early && d.options.Deferred:
		return ease(found, checks.Warn)
	}
	return found
}
