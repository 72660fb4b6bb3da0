package nvmlprobe_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/test/gpufake"
)

func TestWatch(t *testing.T) {
	libs := gpufake.Build(t, gpufake.NVML)
	xid := func(gpu int, xid uint64) wire.Event {
		return wire.Event{UUID: gpufake.UUID(gpu), Type: 8, Data: xid}
	}
	for _, test := range []struct {
		name   string
		rules  string
		values string
		watch  wire.Line // the line that ends the step
		events map[int]wire.Event
		failed *wire.Line // of nvml.event, where the waiting failed
	}{
		{name: "nothing happens", watch: wire.Line{State: wire.StateOK}},
		{
			name: "XIDs of both", values: "0.xid=31;1.xid=79", watch: wire.Line{State: wire.StateOK},
			events: map[int]wire.Event{0: xid(0, 31), 1: xid(1, 79)},
		},
		{
			name: "told after the end of stdin", values: "1.xid=79;xid_wait=2", watch: wire.Line{State: wire.StateOK},
			events: map[int]wire.Event{1: xid(1, 79)},
		},
		{
			name: "only what is supported is asked for", values: "event_types=8;0.xid=48",
			watch: wire.Line{State: wire.StateOK}, events: map[int]wire.Event{0: xid(0, 48)},
		},
		{
			name: "one GPU has no events", rules: "nvmlDeviceRegisterEvents@0=3", values: "1.xid=79",
			watch:  wire.Line{State: wire.StateOK, Detail: "GPU 0: nvmlDeviceRegisterEvents: Not Supported"},
			events: map[int]wire.Event{1: xid(1, 79)},
		},
		{name: "no GPU has events", rules: "nvmlDeviceGetSupportedEventTypes=3", watch: wire.Line{
			State: wire.StateSkip, Detail: "GPU 0: nvmlDeviceGetSupportedEventTypes: Not Supported; " +
				"GPU 1: nvmlDeviceGetSupportedEventTypes: Not Supported",
		}},
		{name: "no set", rules: "nvmlEventSetCreate=4", watch: wire.Line{
			State: wire.StateSkip, Call: "nvmlEventSetCreate", Code: 4, Detail: "Insufficient Permissions",
		}},
		{
			name: "a lost GPU is not watched", rules: "nvmlDeviceGetHandleByIndex_v2@0=15", values: "1.xid=79",
			watch: wire.Line{State: wire.StateOK}, events: map[int]wire.Event{1: xid(1, 79)},
		},
		{
			name: "lost while waiting", rules: "nvmlEventSetWait_v2=15", watch: wire.Line{State: wire.StateOK},
			failed: new(failure("nvmlEventSetWait_v2", 15, "GPU is lost")),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := box{libs: libs, rules: test.rules, values: test.values, gpus: 2}.run(t, "watch")
			got.requireEnd(t)
			require.Equal(t, test.watch, verdict(got.step(t, wire.NVMLWatch, wire.NoGPU)))
			events := map[int]wire.Event{}
			for _, line := range got.lines {
				if line.Step == wire.NVMLEvent && line.State == wire.StateOK {
					events[line.GPU] = data[wire.Event](t, line)
				}
			}
			if test.events == nil {
				test.events = map[int]wire.Event{}
			}
			require.Equal(t, test.events, events)
			if test.failed != nil {
				require.Equal(t, *test.failed, verdict(got.step(t, wire.NVMLEvent, wire.NoGPU)))
			}
		})
	}
}

// The parent learns of an event while its own test still runs, and ends the watch when it likes.
func TestWatch_TellsAtOnceAndEndsWithStdin(t *testing.T) {
	b := box{libs: gpufake.Build(t, gpufake.NVML), values: "xid=79;xid_wait=3", gpus: 1}
	cmd := b.command(t, "watch")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	lines := listen(t, cmd)
	until := func(step wire.Step, state wire.State) {
		for line := range lines {
			if line.Step == step && line.State == state {
				return
			}
		}
		require.Fail(t, "the report ended", "before %s %s", step, state)
	}
	until(wire.NVMLWatch, wire.StateOK)
	until(wire.NVMLEvent, wire.StateOK)
	require.NoError(t, stdin.Close())
	until("", wire.StateEnd)
	require.Zero(t, wait(t, cmd))
}

// A storm of events fills no report, and does not keep the helper from its end.
func TestWatch_Storm(t *testing.T) {
	got := box{libs: gpufake.Build(t, gpufake.NVML), values: "xid=94;xid_times=1500", gpus: 1}.run(t, "watch")
	got.requireEnd(t)
	events := 0
	for _, line := range got.lines {
		if line.Step == wire.NVMLEvent && line.State == wire.StateOK {
			events++
		}
	}
	require.Equal(t, 1000, events)
}
