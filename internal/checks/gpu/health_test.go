package gpu

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/wire"
)

func TestExamine(t *testing.T) {
	many := uint64(3)
	for _, tt := range []struct {
		name   string
		health wire.Health
		status checks.Status // Pass: nothing is found
		want   string
	}{
		{"nothing was answered", wire.Health{}, checks.Pass, ""},
		{"all is well", wire.Health{
			ECCVolatile: new(uint64(0)), ECCAggregate: &many, RowsFailed: new(false), RowsPending: new(false), RecoveryAction: new(0),
			Temperature: new(40), SlowdownAt: new(87), ThrottleReasons: new(uint64(1)), PCIeWidth: new(16), PCIeMaxWidth: new(16),
			MIG: new(false), MIGPending: new(false), ComputeMode: new(0), FabricState: new(0), PagesSBE: new(5), PagesDBE: new(5),
		}, checks.Pass, ""},
		{"recovery", wire.Health{RecoveryAction: new(2)}, checks.Fail, "the driver asks for a recovery: Reboot"},
		{"a recovery that is not known yet", wire.Health{RecoveryAction: new(17)}, checks.Fail, "the driver asks for recovery action 17"},
		{"errors", wire.Health{ECCVolatile: &many}, checks.Fail, "3 uncorrectable ECC errors"},
		{"rows failed", wire.Health{RowsFailed: new(true)}, checks.Fail, "a row remapping failed"},
		{"rows pending", wire.Health{RowsPending: new(true)}, checks.Warn, "waits for the next reset"},
		{"rows worn", wire.Health{RowsUncorrected: new(512)}, checks.Fail, "512 memory rows"},
		{"rows used", wire.Health{RowsUncorrected: new(511)}, checks.Pass, ""},
		{"pages worn", wire.Health{PagesSBE: new(60), PagesDBE: new(3)}, checks.Fail, "63 memory pages retired"},
		{"pages pending", wire.Health{PagesPending: new(true)}, checks.Warn, "page retirement"},
		{"too hot", wire.Health{Temperature: new(91), SlowdownAt: new(87)}, checks.Fail, "too hot: 91 °C"},
		{"no limit of heat", wire.Health{Temperature: new(91), SlowdownAt: new(0)}, checks.Pass, ""},
		{"throttled", wire.Health{ThrottleReasons: new(uint64(0x44))}, checks.Warn, "hardware thermal slowdown"},
		{"power brake", wire.Health{ThrottleReasons: new(uint64(0x80))}, checks.Warn, "power brake"},
		{"capped power", wire.Health{ThrottleReasons: new(uint64(0x04))}, checks.Pass, ""},
		{"narrow link", wire.Health{PCIeWidth: new(8), PCIeMaxWidth: new(16)}, checks.Warn, "8 of 16 lanes"},
		{"an idle link", wire.Health{PCIeGen: new(1), PCIeMaxGen: new(5)}, checks.Pass, ""},
		{"MIG without instances", wire.Health{MIG: new(true)}, checks.Fail, "MIG is on"},
		{"MIG", wire.Health{MIG: new(true), MIGDevices: []string{"MIG-1"}}, checks.Pass, ""},
		{"MIG to be switched on", wire.Health{MIG: new(false), MIGPending: new(true)}, checks.Warn, "a change of MIG"},
		{"ECC to be switched on", wire.Health{ECCMode: new(false), ECCPending: new(true)}, checks.Warn, "a change of ECC"},
		{"prohibited", wire.Health{ComputeMode: new(2)}, checks.Fail, "computing is prohibited"},
		{"exclusive", wire.Health{ComputeMode: new(3)}, checks.Pass, ""},
		{"fabric in progress", wire.Health{FabricState: new(2)}, checks.Warn, "still being set up"},
		{"fabric not started", wire.Health{FabricState: new(1)}, checks.Warn, "has not been set up"},
		{"fabric unhealthy", wire.Health{FabricState: new(3), FabricSummary: new(2)}, checks.Fail, "unhealthy"},
		{"fabric limited", wire.Health{FabricState: new(3), FabricSummary: new(3)}, checks.Warn, "limited"},
		{"a summary before the fabric is done", wire.Health{FabricState: new(0), FabricSummary: new(2)}, checks.Pass, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found := examine(tt.health)
			require.Equal(t, tt.status, worst(found), found)
			if tt.status == checks.Pass {
				require.Empty(t, found)
				return
			}
			require.Contains(t, found[0].String(), "GPU 0: ")
			require.Contains(t, found[0].text, tt.want)
			require.NotEmpty(t, found[0].remedy)
		})
	}
}

func TestMissing(t *testing.T) {
	two := []wire.Device{{UUID: "GPU-1"}, {UUID: "GPU-2", Index: 1}}
	for _, tt := range []struct {
		name    string
		survey  survey
		environ []string
		config  []string
		status  checks.Status
		want    string
	}{
		{"all agree", survey{presence: presence{devices: []string{"a", "b"}}, nvml: inventory{source: "NVML", count: 2}, cuda: listing{devices: two}}, nil, nil, checks.Pass, ""},
		{"CUDA misses one", survey{nvml: inventory{source: "NVML", count: 3}, cuda: listing{devices: two}}, nil, nil, checks.Fail, "NVML sees 3 GPUs, CUDA only 2"},
		{"somebody chose two", survey{nvml: inventory{source: "NVML", count: 3}, cuda: listing{devices: two}}, []string{"CUDA_VISIBLE_DEVICES=0,1"}, nil, checks.Pass, ""},
		{"a node too many", survey{presence: presence{devices: []string{"a", "b", "c"}}, nvml: inventory{source: "NVML", count: 2}}, nil, nil, checks.Warn, "3 device nodes for GPUs, and NVML sees only 2"},
		{"nobody sees one", survey{presence: presence{devices: []string{"a"}}, nvml: inventory{source: "NVML"}}, nil, nil, checks.Fail, "NVML sees no GPU, though there should be one"},
		{"fewer than expected", survey{nvml: inventory{source: "NVML", count: 2}, cuda: listing{devices: two}}, nil, []string{"RUNPOD_GPU_COUNT=4"}, checks.Fail, "2 GPUs are here, 4 expected (RUNPOD_GPU_COUNT)"},
		{"more than expected", survey{nvml: inventory{source: "NVML", count: 2}, cuda: listing{devices: two}}, nil, []string{"RUNPOD_GPU_COUNT=1"}, checks.Pass, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := New(Options{Config: configOf(tt.config...), Env: append([]string{"A=b"}, tt.environ...)})
			found := d.missing(&tt.survey)
			require.Equal(t, tt.status, worst(found), found)
			if tt.want != "" {
				require.Equal(t, tt.want, found[0].String())
			}
		})
	}
}

func TestXIDPolicy(t *testing.T) {
	for _, tt := range []struct {
		id           int
		line         string
		fail, ignore string
		want         checks.Status
	}{
		{id: 13, want: checks.Pass},
		{id: 31, want: checks.Pass},
		{id: 43, want: checks.Pass},
		{id: 45, want: checks.Pass},
		{id: 68, want: checks.Pass},
		{id: 109, want: checks.Warn},
		{id: 48, want: checks.Fail},
		{id: 79, want: checks.Fail},
		{id: 94, want: checks.Warn},
		{id: 94, fail: "31, 94", want: checks.Fail},
		{id: 79, ignore: "79", want: checks.Pass},
		{id: 79, fail: "79", ignore: "79", want: checks.Pass},
		{id: 9999, want: checks.Warn},
		{id: 149, line: "NVRM: Xid (PCI:0000:1a:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x1)", want: checks.Fail},
		{id: 149, line: "NVRM: Xid (PCI:0000:1a:00): 149, NETIR_LINK_EVT  Nonfatal XC0 i0 Link 08 (0x1)", want: checks.Warn},
		{id: 154, line: "NVRM: Xid (PCI:0000:1a:00): 154, GPU recovery action changed from 0x1 (Reset) to 0x0 (None)", want: checks.Pass},
		{id: 154, line: "NVRM: Xid (PCI:0000:1a:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", want: checks.Fail},
	} {
		t.Run(fmt.Sprintf("%d %s fail=%s ignore=%s", tt.id, tt.line, tt.fail, tt.ignore), func(t *testing.T) {
			p, err := newXIDPolicy(tt.fail, tt.ignore)
			require.NoError(t, err)
			found := p.judgeAll([]xidEvent{{gpu: "GPU 1", id: tt.id, line: tt.line}, {gpu: "GPU 1", id: tt.id, line: tt.line}})
			require.Equal(t, tt.want, worst(found))
			if tt.want != checks.Pass {
				require.Len(t, found, 1, "each once")
				require.Contains(t, found[0].String(), fmt.Sprintf("GPU 1: Xid %d: ", tt.id))
				require.Contains(t, found[0].remedy, "RUNPODCTL_WORKER_XID_IGNORE")
			}
		})
	}
	_, err := newXIDPolicy("48,x", "")
	require.EqualError(t, err, `RUNPODCTL_WORKER_XID_FAIL="48,x": want numbers with commas between them`)
	_, err = newXIDPolicy("", "-1")
	require.ErrorContains(t, err, "RUNPODCTL_WORKER_XID_IGNORE")
}

func TestXIDs_AreListedOnce(t *testing.T) {
	seen := map[int]bool{}
	for _, x := range xids {
		require.NotEmpty(t, x.text)
		for _, id := range x.ids {
			require.False(t, seen[id], id)
			seen[id] = true
		}
	}
}

func TestParseRecord(t *testing.T) {
	for _, tt := range []struct {
		name, record string
		want         logged
	}{
		{"an Xid", "3,1234,5000000,-;NVRM: Xid (PCI:0000:1a:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n SUBSYSTEM=pci", logged{at: 5 * time.Second, pci: "0000:1a:00", id: 79}},
		{"an old kernel's", "3,1,1,-;NVRM: Xid (0000:1a:00): 31, Ch 00000001", logged{at: time.Microsecond, pci: "0000:1a:00", id: 31}},
		{"off the bus without a number", "3,1,1,-;NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.", logged{at: time.Microsecond, pci: "0000:18:00.0", id: 79}},
		{"off the bus at the start", "3,1,1,-;The NVIDIA GPU 0000:18:00.0 (PCI ID: 10de:2330) has fallen off the bus and is not responding to commands.", logged{at: time.Microsecond, pci: "0000:18:00.0", id: 79}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := parseRecord(tt.record)
			require.True(t, ok)
			require.NotContains(t, got.line, "\n")
			got.line = ""
			require.Equal(t, tt.want, got)
		})
	}
	for _, record := range []string{
		"", "3,1,1,-", "3,1;NVRM: Xid (PCI:0000:1a:00): 79, x", "3,1,x,-;NVRM: Xid (PCI:0000:1a:00): 79, x",
		"3,1,1,-;NVRM: loading NVIDIA UNIX Open Kernel Module", "3,1,1,-;usb 1-1: device has fallen off the bus",
	} {
		_, ok := parseRecord(record)
		require.False(t, ok, record)
	}
}

func TestRecent(t *testing.T) {
	units := map[string]string{busID("00000000:1A:00.0"): "GPU 0"}
	entries := []logged{
		{at: time.Minute, pci: "0000:1a:00", id: 79},
		{at: 20 * time.Minute, pci: "0000:1a:00", id: 48},
		{at: 20 * time.Minute, pci: "0000:1b:00", id: 95},
	}
	require.Equal(t, []xidEvent{{gpu: "GPU 0", id: 48}}, recent(entries, 25*time.Minute, units), "neither old ones nor those of others")
}

func TestUnitsByBus_KnowsWhoHasGone(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{"proc/driver/nvidia/gpus/0000:1b:00.0/information": "", "proc/driver/nvidia/gpus/0000:1a:00.0/information": ""})
	s := &survey{presence: presence{root: root}, nvml: inventory{health: []wire.Health{{Index: 3, PCI: "00000000:1A:00.0"}}}}
	require.Equal(t, map[string]string{busID("0000:1a:00"): "GPU 3", busID("0000:1b:00"): "GPU 0000:1b:00.0"}, s.unitsByBus())
}

func TestBlocked(t *testing.T) {
	root := t.TempDir()
	require.Equal(t, "; /dev/nvidiactl is not in this container", blocked(root))
	write(t, root, map[string]string{"dev/nvidiactl": ""})
	require.Equal(t, "; /dev/nvidia-uvm is not in this container", blocked(root))
	write(t, root, map[string]string{"dev/nvidia-uvm": ""})
	require.Empty(t, blocked(root))
	for err, want := range map[syscall.Errno]string{
		syscall.EPERM: "is blocked by the device cgroup", syscall.EACCES: "may not be opened by this user",
		syscall.ENODEV: "has no driver behind it", syscall.EIO: "cannot be opened: open x: input/output error",
	} {
		require.Equal(t, want, whyBlocked(&fs.PathError{Op: "open", Path: "x", Err: err}))
	}
}

func TestKernelLog(t *testing.T) {
	root := t.TempDir()
	_, _, err := kernelLog(root)
	require.Error(t, err, "as in a container")
	write(t, root, map[string]string{"dev/kmsg": "3,1,1,-;NVRM: Xid (PCI:0000:1a:00): 79, x"})
	entries, now, err := kernelLog(root)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("only Linux has one")
	}
	require.NoError(t, err)
	require.Positive(t, now)
	require.Len(t, entries, 1)
}

func FuzzParseRecord(f *testing.F) {
	f.Add("3,1234,5000000,-;NVRM: Xid (PCI:0000:1a:00): 79, x")
	f.Add("3,1,1,-;NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.")
	f.Fuzz(func(t *testing.T, record string) {
		l, ok := parseRecord(record)
		if ok {
			require.NotContains(t, l.line, "\n")
			require.GreaterOrEqual(t, l.at, time.Duration(0))
			recent([]logged{l}, time.Hour, map[string]string{busID(l.pci): strings.Repeat("x", 3)})
		}
	})
}
