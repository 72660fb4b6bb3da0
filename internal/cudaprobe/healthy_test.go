package cudaprobe_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/test/gpufake"
)

const small = " --bytes 65536 --fill-bytes 1048576"

func TestHealthy(t *testing.T) {
	one, far := gpufake.UUID(0), gpufake.UUID(3)
	for _, test := range []struct {
		name  string
		args  string
		gpus  int
		steps []wire.Step // after load, init, list
	}{
		{"list of one", "list", 1, nil},
		{"list of four", "list", 4, nil},
		{"memory of the only GPU", "memory --gpu " + one + small, 1, []wire.Step{wire.CUDAContext, wire.CUDAMemory, wire.CUDAFill, wire.CUDATeardown}},
		{"memory of the last of four", "memory --gpu " + far + small, 4, []wire.Step{wire.CUDAContext, wire.CUDAMemory, wire.CUDAFill, wire.CUDATeardown}},
		{"init", "init --gpu " + far, 4, []wire.Step{wire.CUDAContext, wire.CUDAMemory, wire.CUDATeardown}},
		{"compute", "compute --n 64 --gpu " + far, 4, []wire.Step{wire.CUDAContext, wire.CUDACompile, wire.CUDACompute, wire.CUDATeardown}},
		{"peer", "peer --from " + far + " --to " + one, 4, []wire.Step{
			wire.CUDAContext, wire.CUDAContext, wire.CUDAPeer, wire.CUDATeardown, wire.CUDATeardown,
		}},
	} {
		for kind, program := range map[string]string{"as released": built, "as this test is built": os.Args[0]} {
			t.Run(test.name+", "+kind, func(t *testing.T) {
				o := scene{args: test.args, gpus: test.gpus, program: program, env: []string{asProbe, noNap}}.run(t)
				require.Equal(t, wire.StateOK, o.last(t).State)
				var steps []wire.Step
				for i := 0; i < len(o.lines)-1; i += 2 {
					steps = append(steps, o.lines[i].Step)
				}
				require.Equal(t, append([]wire.Step{wire.CUDALoad, wire.CUDAInit, wire.CUDAList}, test.steps...), steps)
				require.Len(t, of[[]wire.Device](t, o, wire.CUDAList), test.gpus)
				require.NotContains(t, strings.Join(o.trace, "\n"), "LEAK")
			})
		}
	}
}

func TestReport_SaysWhatWasMeasured(t *testing.T) {
	t.Run("library", func(t *testing.T) {
		library := of[wire.Library](t, scene{args: "list", values: "cuda=11040"}.run(t), wire.CUDALoad)
		require.Equal(t, 11040, library.Version)
		require.FileExists(t, library.Path)
		require.True(t, strings.HasSuffix(library.Path, "/libcuda.so.1"), library.Path)
	})
	t.Run("devices", func(t *testing.T) {
		o := scene{args: "list", gpus: 2, values: "1.name=NVIDIA L4;1.cc_major=8;1.cc_minor=9;1.memory_total=64;1.compute_mode=3"}.run(t)
		require.Equal(t, wire.Device{
			Index: 1, Name: "NVIDIA L4", UUID: gpufake.UUID(1), PCI: "0000:1B:00.0", Major: 8, Minor: 9, Total: 64 << 20, Mode: 3,
		}, of[[]wire.Device](t, o, wire.CUDAList)[1])
	})
	t.Run("memory", func(t *testing.T) {
		o := scene{args: "memory --bytes 8388612 --gpu " + gpufake.UUID(0), values: "memory_free=160"}.run(t)
		require.Equal(t, wire.Memory{Free: 160 << 20, Total: 512 << 20}, of[wire.Memory](t, o, wire.CUDAContext))
		require.Equal(t, wire.MemoryTest{Bytes: 8<<20 + 4, Passes: 2}, of[wire.MemoryTest](t, o, wire.CUDAMemory))
		fill := of[wire.FillTest](t, o, wire.CUDAFill)
		require.Equal(t, uint64(16<<20), fill.Bytes, "a tenth of what is free")
		require.InDelta(t, 1000, fill.GBps, 1, "the fake's memory moves a TB a second")
	})
	t.Run("compute", func(t *testing.T) {
		o := scene{args: "compute --n 64 --runs 3 --gpu " + gpufake.UUID(0), values: "kernel_us=1000"}.run(t)
		require.Equal(t, wire.Compute{N: 64, FirstMS: 4, BestMS: 1, MeanMS: 1, GFLOPS: 2 * 64 * 64 * 64 / 1e6},
			of[wire.Compute](t, o, wire.CUDACompute))
	})
	t.Run("peer", func(t *testing.T) {
		from, to := gpufake.UUID(1), gpufake.UUID(0)
		o := scene{args: "peer --from " + from + " --to " + to, gpus: 2}.run(t)
		require.Equal(t, wire.Peer{From: from, To: to, Possible: true, Bytes: 16 << 20}, of[wire.Peer](t, o, wire.CUDAPeer))
	})
}

func TestVisibleDevices(t *testing.T) {
	for _, test := range []struct {
		name    string
		visible string
		values  string
		want    []string
	}{
		{"an index", "2", "", []string{gpufake.UUID(2)}},
		{"in the order given", "3,1", "", []string{gpufake.UUID(3), gpufake.UUID(1)}},
		{"a UUID", gpufake.UUID(2), "", []string{gpufake.UUID(2)}},
		{"the beginning of a UUID", "GPU-10000003", "", []string{gpufake.UUID(3)}},
		{"an invalid entry ends the list", "0,9,1", "", []string{gpufake.UUID(0)}},
		{"a MIG device", gpufake.SliceUUID(1, 1), "1.mig=2", []string{gpufake.SliceUUID(1, 1)}},
		{"one MIG device hides all else", "0,1", "1.mig=2", []string{gpufake.SliceUUID(1, 0)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := scene{args: "list", gpus: 4, values: test.values, env: []string{"CUDA_VISIBLE_DEVICES=" + test.visible}}.run(t)
			require.Equal(t, wire.StateOK, o.last(t).State)
			var uuids []string
			for _, d := range of[[]wire.Device](t, o, wire.CUDAList) {
				uuids = append(uuids, d.UUID)
			}
			require.Equal(t, test.want, uuids)
		})
	}
}

func TestMIG_IsTestedAsAGPU(t *testing.T) {
	slice := gpufake.SliceUUID(0, 1)
	o := scene{args: "memory --gpu " + slice + small, values: "mig=3", env: []string{"CUDA_VISIBLE_DEVICES=" + slice}}.run(t)
	require.Equal(t, wire.StateOK, o.last(t).State)
}

func TestOldDriver(t *testing.T) {
	o := scene{library: gpufake.CUDAOld, args: "memory --gpu " + gpufake.UUID(0) + small}.run(t)
	require.Equal(t, wire.StateOK, o.last(t).State)
	require.Contains(t, o.trace, "cuDeviceGetUuid 0")
}
