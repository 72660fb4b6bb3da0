package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/wire"
)

func TestParseHeader(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       wire.Driver
	}{
		{"as for years", "| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |", wire.Driver{Version: "550.54.15", CUDA: 12040}},
		{"two digits", "| NVIDIA-SMI 999.1   Driver Version: 999.1   CUDA Version: 12.10 |", wire.Driver{Version: "999.1", CUDA: 12100}},
		{"newer words", "| NVIDIA-SMI 595.45.04   KMD Version: 595.45.04   CUDA UMD Version: 13.2 |", wire.Driver{Version: "595.45.04", CUDA: 13020}},
		{"no libcuda", "| NVIDIA-SMI 535.1   Driver Version: 535.1   CUDA Version: N/A |", wire.Driver{Version: "535.1"}},
		{"an old one that does not tell", "| NVIDIA-SMI 390.1   Driver Version: 390.1 |", wire.Driver{Version: "390.1"}},
		{"something else", "No devices were found", wire.Driver{}},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, parseHeader(tt.text)) })
	}
}

func TestParseRows(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		health     []wire.Health
		lost       []wire.Line
	}{
		{"nothing", "No devices were found\n", nil, nil},
		{
			"everything", "0, NVIDIA H100 Error Edition, GPU-1, 00000000:1A:00.0, 81559, 81000, 2, Disabled, Drain and Reset\n",
			[]wire.Health{{
				Name: "NVIDIA H100 Error Edition", UUID: "GPU-1", PCI: "00000000:1A:00.0", ECCVolatile: new(uint64(2)), MIG: new(false),
				Memory: &wire.NVMLMemory{Total: 81559 << 20, Free: 81000 << 20, Used: 559 << 20}, RecoveryAction: new(4),
			}},
			nil,
		},
		{
			"units, and answers that are none", "1, NVIDIA GeForce RTX 4090, GPU-2, 00000000:01:00.0, 24564 MiB, 24000 MiB, [N/A], [Not Supported]\n",
			[]wire.Health{{
				Index: 1, Name: "NVIDIA GeForce RTX 4090", UUID: "GPU-2", PCI: "00000000:01:00.0",
				Memory: &wire.NVMLMemory{Total: 24564 << 20, Free: 24000 << 20, Used: 564 << 20},
			}},
			nil,
		},
		{"a short row", "0, NVIDIA T4\n", []wire.Health{{Name: "NVIDIA T4"}}, nil},
		{
			"two that are gone", "0, [GPU requires reset], [GPU requires reset]\n1, [GPU is lost], [GPU is lost]\n", nil,
			[]wire.Line{lostLine(0, nvmlResetRequired), lostLine(1, nvmlIsLost)},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			health, lost := parseRows(tt.text)
			require.Equal(t, tt.health, health)
			require.Equal(t, tt.lost, lost)
		})
	}
}

func TestAskSMI_Slices(t *testing.T) {
	path := script(t, t.TempDir(), tool, `case "$1" in
"") echo "| NVIDIA-SMI 535.1  Driver Version: 535.1  CUDA Version: 12.2 |" ;;
--query-gpu=*gpu_recovery_action*) echo 'Field "gpu_recovery_action" is not a valid field to query.'; exit 2 ;;
--query-gpu=*) echo "0, NVIDIA A100-SXM4-40GB, GPU-1, 00000000:1A:00.0, 40960, [Insufficient Permissions], [N/A], Enabled" ;;
-L) echo "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)"
    echo "  MIG 1g.5gb      Device  0: (UUID: MIG-aaaa)"
    echo "  MIG 1g.5gb      Device  1: (UUID: MIG-GPU-1/7/0)" ;;
esac`)
	inv := askSMI(t.Context(), path, nil)
	require.NoError(t, inv.err)
	require.Equal(t, wire.Driver{Version: "535.1", CUDA: 12020}, inv.driver)
	require.Empty(t, examine(inv.health[0]), "what cannot be asked speaks against nobody")
	s := &survey{smi: inv}
	units := s.units(false)
	require.Len(t, units, 2)
	require.Equal(t, unit{name: "GPU 0 slice 1", model: "NVIDIA A100-SXM4-40GB", uuid: "MIG-GPU-1/7/0", total: 5 << 30, slice: true}, units[1])
	var values []any
	for _, f := range healthFacts(s) {
		values = append(values, f.Value)
	}
	require.Contains(t, values, "n/a")
}

func TestAskSMI_Failures(t *testing.T) {
	for _, tt := range []struct{ name, script, want string }{
		{"no driver", "echo NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.\nexit 9", "nvidia-smi failed: NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver."},
		{"without a word", "exit 6", "nvidia-smi failed: exit code 6"},
		{"at the second question", `[ -z "$1" ] || { echo Unknown Error; exit 1; }`, "nvidia-smi failed: Unknown Error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.EqualError(t, askSMI(t.Context(), script(t, t.TempDir(), tool, tt.script), nil).err, tt.want)
		})
	}
	require.ErrorIs(t, askSMI(t.Context(), "", nil).err, errNoTool)
}

func FuzzSMI(f *testing.F) {
	f.Add("0, NVIDIA H100, GPU-1, 0:1A:00.0, 1, 1, 2, Enabled, None", "GPU 0: x (UUID: GPU-1)\n  MIG 1g.5gb Device 0: (UUID: MIG-1)", "CUDA Version: 12.4")
	f.Add("1, [GPU is lost]", "", "CUDA UMD Version: 13.2")
	f.Fuzz(func(t *testing.T, rows, list, header string) {
		inv := inventory{source: tool, driver: parseHeader(header)}
		inv.health, inv.lost = parseRows(rows)
		addSlices(inv.health, list)
		require.GreaterOrEqual(t, inv.driver.CUDA, 0)
		s := &survey{smi: inv}
		for _, u := range s.units(false) {
			require.NotEmpty(t, u.name)
		}
		conclude(checks.Result{}, examineAll(inv.health), 3)
	})
}

func examineAll(list []wire.Health) []finding {
	var found []finding
	for _, h := range list {
		found = append(found, examine(h)...)
	}
	return found
}
