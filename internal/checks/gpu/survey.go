package gpu

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"runpodctl-worker/internal/checks/gpu/wire"
)

// survey is what was found out about the GPUs before any of them was touched. The checks of a pass share it.
type survey struct {
	presence presence
	environ  []string // of the helpers
	cuda     listing
	nvml     inventory // of the NVML helper
	smi      inventory // of nvidia-smi, where the helper could not tell
	events   []xidEvent
	logErr   error // why the kernel's log could not be read
}

// listing is what CUDA says without creating a context.
type listing struct {
	library wire.Library
	devices []wire.Device
	failure *wire.Line // the step that failed
	err     error      // why the helper did not get to its end
}

// works tells whether CUDA could be initialised and lists GPUs.
func (l listing) works() bool { return l.err == nil && l.failure == nil && len(l.devices) > 0 }

func listingOf(lines []wire.Line, err error) listing {
	l := listing{err: err}
	l.library, _ = data[wire.Library](lines, wire.CUDALoad)
	l.devices, _ = data[[]wire.Device](lines, wire.CUDAList)
	if line, failed := failedLine(lines); failed {
		l.failure = &line
	}
	return l
}

// management is who speaks for the driver: NVML where it answered, else nvidia-smi.
func (s *survey) management() inventory {
	if s.smi.source != "" && s.smi.err == nil {
		return s.smi
	}
	return s.nvml
}

// listed tells whether anybody lists a GPU. nvidia-smi shows a driver's version only where there is one.
func (s *survey) listed() bool {
	return len(s.cuda.devices) > 0 || s.nvml.count > 0 || s.smi.count > 0 || s.smi.driver.Version != ""
}

// hung tells whether anybody who was asked did not answer.
func (s *survey) hung() bool { return silent(s.cuda.err) || silent(s.nvml.err) || silent(s.smi.err) }

// Answers that only a kernel driver that is there can cause.
var (
	nvmlRefusals = []int{4, 15, 16, 17, 18} // no permission, lost, reset required, blocked, version mismatch
	cudaRefusals = []int{46, 802, 803, 804} // unavailable, fabric not ready, version mismatch, no compatibility
)

// refused tells whether a driver answered, though with no.
func (s *survey) refused() bool {
	return s.nvml.failure != nil && slices.Contains(nvmlRefusals, s.nvml.failure.Code) ||
		s.cuda.failure != nil && slices.Contains(cudaRefusals, s.cuda.failure.Code)
}

// unheard tells whether there is a driver library and nobody to ask through it: then nobody knows that there is no GPU.
func (s *survey) unheard() bool {
	dumb := func(err error) bool {
		switch err.(type) { //nolint:errorlint // ask returns these as they are
		case startError, rubbishError, unaskedError:
			return true
		}
		return false
	}
	return len(s.presence.libraries) > 0 && dumb(s.cuda.err) && dumb(s.nvml.err) && (s.smi.source == "" || s.smi.err != nil)
}

// absent says why there is no GPU here, or nothing where there should be one. Files of a driver alone, as an image may
// carry them, make no GPU, unless somebody lists one or does not answer.
func (s *survey) absent() string {
	switch {
	case s.presence.proof(), s.listed(), s.hung(), s.refused(), s.unheard():
		return ""
	case len(s.presence.libraries) > 0:
		return "no GPU: there are driver libraries (" + strings.Join(s.presence.libraries, ", ") + "), but no device that they know"
	}
	return "no GPU: there is nvidia-smi, but no device that it knows"
}

// survey asks CUDA and NVML side by side, each in a helper of its own; nvidia-smi only where NVML could not tell.
func (d *Driver) survey(ctx context.Context, seen presence) *survey {
	s := &survey{presence: seen, environ: helperEnviron(d.environ, "", strings.Join(seen.extra, ":"))}
	var asking sync.WaitGroup
	asking.Go(func() { s.cuda = d.list(ctx, s.environ) })
	asking.Go(func() {
		s.nvml = inventoryOf(d.helpers.ask(ctx, question{
			helper: NVMLHelper, args: []string{"health"}, environ: s.environ,
		}))
	})
	asking.Wait()
	if fallback(s.nvml) {
		s.smi = askSMI(ctx, seen.tool, d.environ)
	}
	entries, now, err := kernelLog(d.options.Root)
	s.logErr = err
	s.events = recent(entries, now, s.unitsByBus())
	return s
}

func (d *Driver) list(ctx context.Context, environ []string) listing {
	return listingOf(d.helpers.ask(ctx, question{helper: CUDAHelper, args: []string{"list"}, environ: environ}))
}

// fallback tells whether nvidia-smi may know more: NVML's helper did not start or died, or found no library. A driver
// that hangs, or refuses, would do the same to nvidia-smi.
func fallback(nvml inventory) bool {
	if nvml.err != nil {
		return !silent(nvml.err)
	}
	return nvml.failure != nil && nvml.failure.Step == wire.NVMLLoad
}

// unitsByBus names the GPUs by their PCI addresses.
func (s *survey) unitsByBus() map[string]string {
	units := map[string]string{}
	known, _ := filepath.Glob(s.presence.root + "/proc/driver/nvidia/gpus/*") // also one that nobody lists any more
	for _, path := range known {
		units[busID(filepath.Base(path))] = "GPU " + filepath.Base(path)
	}
	for _, d := range s.cuda.devices {
		units[busID(d.PCI)] = unitName(d.Index)
	}
	for _, h := range s.management().health {
		units[busID(h.PCI)] = unitName(h.Index)
	}
	return units
}
