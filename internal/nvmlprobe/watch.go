//go:build linux && cgo

package nvmlprobe

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"runpodctl-worker/internal/checks/gpu/wire"
)

// eventSymbols are all needed: without one of them there is no watch.
var eventSymbols = []string{
	"nvmlEventSetCreate", "nvmlDeviceGetSupportedEventTypes", "nvmlDeviceRegisterEvents", "nvmlEventSetWait_v2",
}

const (
	watched = nvml.EventTypeSingleBitEccError | nvml.EventTypeDoubleBitEccError | nvml.EventTypeXidCriticalError

	waitMS    = 100             // for one event: also how long none comes before the rest is taken as told
	drainTime = 2 * time.Second // for what is still told after stdin has ended, however much it is
	maxEvents = 1000            // are reported: memory that goes bad makes a storm of them
)

// watch reports the events of the GPUs until stdin ends. It does not wait for that end to look: of several XIDs the
// driver may keep only the last.
func watch(report *wire.Report, lib *library, gpus []gpu, stdin io.Reader) {
	set, ok := register(report, lib, gpus)
	if !ok {
		return
	}
	ended := make(chan struct{})
	go func() { // ends with stdin, or with the process
		defer close(ended)
		_, _ = io.Copy(io.Discard, stdin)
	}()
	var last <-chan time.Time
	told := 0
	for {
		data, ret := set.Wait(waitMS)
		switch {
		case ret == nvml.SUCCESS && told == maxEvents:
		case ret == nvml.SUCCESS:
			told++
			index, event := describe(gpus, data)
			report.Begin(wire.NVMLEvent, index).Done(wire.Outcome{State: wire.StateOK, Data: event})
		case ret != nvml.ERROR_TIMEOUT:
			report.Begin(wire.NVMLEvent, wire.NoGPU).Done(failed("nvmlEventSetWait_v2", ret))
			return
		case last != nil:
			return
		}
		select {
		case <-ended:
			ended, last = nil, time.After(drainTime)
		case <-last:
			return
		default:
		}
	}
}

// describe says what happened, and to which GPU. One that has gone may no longer tell its UUID, but is known by its
// handle.
func describe(gpus []gpu, data nvml.EventData) (index int, event wire.Event) {
	event = wire.Event{Type: data.EventType, Data: data.EventData}
	for _, g := range gpus {
		if g.device == data.Device {
			event.UUID = g.uuid
			return g.index, event
		}
	}
	event.UUID, _ = data.Device.GetUUID()
	return wire.NoGPU, event
}

// register turns the events on. GPUs that have none are named in the step's detail.
func register(report *wire.Report, lib *library, gpus []gpu) (nvml.EventSet, bool) {
	step := report.Begin(wire.NVMLWatch, wire.NoGPU)
	if len(gpus) == 0 {
		step.Done(wire.Outcome{State: wire.StateSkip, Detail: "no GPU to watch"})
		return nil, false
	}
	for _, symbol := range eventSymbols {
		if !lib.has(symbol) {
			step.Done(wire.Outcome{State: wire.StateSkip, Call: symbol, Detail: notHere})
			return nil, false
		}
	}
	set, ret := lib.EventSetCreate()
	if ret != nvml.SUCCESS {
		step.Done(skipped("nvmlEventSetCreate", ret))
		return nil, false
	}
	var unwatched []string
	for _, g := range gpus {
		if call, ret := subscribe(set, g.device); ret != nvml.SUCCESS {
			unwatched = append(unwatched, fmt.Sprintf("GPU %d: %s: %s", g.index, call, ret.Error()))
		}
	}
	detail := strings.Join(unwatched, "; ")
	if len(unwatched) == len(gpus) {
		step.Done(wire.Outcome{State: wire.StateSkip, Detail: detail})
		return nil, false
	}
	step.Done(wire.Outcome{State: wire.StateOK, Detail: detail})
	return set, true
}

func subscribe(set nvml.EventSet, device nvml.Device) (call string, ret nvml.Return) {
	supported, ret := device.GetSupportedEventTypes()
	if ret != nvml.SUCCESS {
		return "nvmlDeviceGetSupportedEventTypes", ret
	}
	return "nvmlDeviceRegisterEvents", device.RegisterEvents(supported&watched, set)
}
