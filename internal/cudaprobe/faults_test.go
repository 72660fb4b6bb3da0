package cudaprobe_test

import (
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/internal/cudaprobe/dynlib"
	"runpodctl-worker/test/gpufake"
)

func TestFaults(t *testing.T) {
	memory := "memory --gpu " + gpufake.UUID(1) + small
	compute := "compute --n 64 --gpu " + gpufake.UUID(1)
	peer := "peer --from " + gpufake.UUID(1) + " --to " + gpufake.UUID(0)
	for _, test := range []struct {
		name  string
		scene scene
		step  wire.Step
		call  string
		code  int
		says  string
	}{
		{"stub library", scene{library: gpufake.CUDAStub, args: "list"}, wire.CUDALoad, "cuDriverGetVersion", 34, ""},
		{"no GPU", scene{args: "list", rules: "cuInit=100"}, wire.CUDAInit, "cuInit", 100, "CUDA_ERROR_100"},
		{"fabric not ready", scene{args: "list", rules: "cuInit=802"}, wire.CUDAInit, "cuInit", 802, ""},
		{"unknown error at the start", scene{args: "list", rules: "cuInit=999"}, wire.CUDAInit, "cuInit", 999, ""},
		{"all GPUs hidden", scene{args: "list", env: []string{"CUDA_VISIBLE_DEVICES="}}, wire.CUDAInit, "cuInit", 100, ""},
		{"no GPU by that number", scene{args: "list", env: []string{"CUDA_VISIBLE_DEVICES=-1"}}, wire.CUDAInit, "cuInit", 100, ""},
		{"lost while listing", scene{args: "list", rules: "cuDeviceGetName@1=999"}, wire.CUDAList, "cuDeviceGetName", 999, ""},
		{"UUID that is not here", scene{args: "init --gpu GPU-x"}, wire.CUDAList, "", 0, "does not see the GPU GPU-x"},
		{"taken by another process", scene{args: memory, rules: "cuDevicePrimaryCtxRetain@1=46"}, wire.CUDAContext, "cuDevicePrimaryCtxRetain", 46, ""},
		{"compute prohibited", scene{args: memory, values: "1.compute_mode=2"}, wire.CUDAContext, "cuDevicePrimaryCtxRetain", 999, ""},
		{"out of memory", scene{args: memory, rules: "cuMemAlloc_v2@1=2"}, wire.CUDAMemory, "cuMemAlloc_v2", 2, "CUDA_ERROR_OUT_OF_MEMORY"},
		{"less free than asked for", scene{args: "memory --gpu " + gpufake.UUID(1), values: "1.memory_free=8"}, wire.CUDAMemory, "cuMemAlloc_v2", 2, ""},
		{"ECC error on reading back", scene{args: memory, rules: "cuMemcpyDtoH_v2@1#2=214"}, wire.CUDAMemory, "cuMemcpyDtoH_v2", 214, ""},
		{"ECC error while filling", scene{args: memory, rules: "cuEventSynchronize@1#2=214"}, wire.CUDAFill, "cuEventSynchronize", 214, ""},
		{"JIT library missing", scene{args: compute, rules: "cuModuleLoadDataEx=221"}, wire.CUDACompile, "cuModuleLoadDataEx", 221, ""},
		{"driver older than our PTX", scene{args: compute, rules: "cuModuleLoadDataEx=222"}, wire.CUDACompile, "cuModuleLoadDataEx", 222, ""},
		{"PTX refused, with the compiler's words", scene{args: compute, rules: "cuModuleLoadDataEx=218"}, wire.CUDACompile, "cuModuleLoadDataEx", 218, "ptxas fatal   : Unresolved extern"},
		{"illegal address, found later", scene{args: compute, rules: "cuEventSynchronize@1=700"}, wire.CUDACompute, "cuEventSynchronize", 700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
		{"launch failed", scene{args: compute, rules: "cuEventSynchronize@1#3=719"}, wire.CUDACompute, "cuEventSynchronize", 719, ""},
		{"launch refused", scene{args: compute, rules: "cuLaunchKernel@1=701"}, wire.CUDACompute, "cuLaunchKernel", 701, ""},
		{"broken at the end", scene{args: compute, rules: "cuDevicePrimaryCtxRelease_v2@1=999"}, wire.CUDATeardown, "cuDevicePrimaryCtxRelease_v2", 999, ""},
		{"peer access refused", scene{args: peer, rules: "cuCtxEnablePeerAccess=217"}, wire.CUDAPeer, "cuCtxEnablePeerAccess", 217, ""},
		{"peer copy refused", scene{args: peer, rules: "cuMemcpyPeer=220"}, wire.CUDAPeer, "cuMemcpyPeer", 220, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.scene.gpus = 2
			line := test.scene.run(t).last(t)
			require.Equal(t, wire.StateFail, line.State)
			require.Equal(t, test.step, line.Step)
			require.Equal(t, test.call, line.Call)
			require.Equal(t, test.code, line.Code)
			require.Contains(t, line.Detail, test.says)
			require.NotEmpty(t, line.Detail)
		})
	}
}

// Whatever call fails, it is named, and nothing follows it.
func TestFault_InAnyCall(t *testing.T) {
	for _, args := range []string{
		"memory --gpu " + gpufake.UUID(0) + small,
		"compute --n 16 --gpu " + gpufake.UUID(0),
		"peer --from " + gpufake.UUID(0) + " --to " + gpufake.UUID(1),
	} {
		mode, _, _ := strings.Cut(args, " ")
		seen := map[string]bool{}
		for _, call := range (scene{args: args, gpus: 2}).run(t).trace {
			name, _, _ := strings.Cut(call, " ")
			if seen[name] {
				continue
			}
			seen[name] = true
			t.Run(mode+" "+name, func(t *testing.T) {
				line := scene{args: args, gpus: 2, rules: name + "=999"}.run(t).last(t)
				require.Equal(t, wire.StateFail, line.State)
				require.Equal(t, 999, line.Code)
				require.Equal(t, strings.TrimSuffix(name, "_v2"), strings.TrimSuffix(line.Call, "_v2"))
			})
		}
		require.Greater(t, len(seen), 15, "calls of a healthy run")
	}
}

func TestFault_OtherGPUsAreWell(t *testing.T) {
	rules := "cuMemAlloc_v2@1=2;cuDevicePrimaryCtxRetain@2=46"
	for gpu, want := range []wire.State{wire.StateOK, wire.StateFail, wire.StateFail, wire.StateOK} {
		uuid := gpufake.UUID(gpu)
		o := scene{args: "init --gpu " + uuid, rules: rules, gpus: 4, env: []string{"CUDA_VISIBLE_DEVICES=" + uuid}}.run(t)
		require.Equal(t, want, o.last(t).State, uuid)
	}
}

// A broken context refuses every call, or hangs over it.
func TestFault_NothingIsAskedAfterIt(t *testing.T) {
	o := scene{args: "compute --n 64 --gpu " + gpufake.UUID(0), rules: "cuEventSynchronize#2=700"}.run(t)
	require.Equal(t, 700, o.last(t).Code)
	require.Equal(t, []string{"cuEventRecord 0", "cuEventSynchronize 0", "cuGetErrorName -1"}, o.trace[len(o.trace)-3:])
}

func TestBadMemory(t *testing.T) {
	run := func(t *testing.T, values string) outcome {
		t.Helper()
		return scene{args: "memory --gpu " + gpufake.UUID(0) + small, values: values}.run(t)
	}
	t.Run("two bits of a word", func(t *testing.T) {
		o := run(t, "flip_bit=2")
		require.Equal(t, wire.StateFail, o.last(t).State)
		test := of[wire.MemoryTest](t, o, wire.CUDAMemory)
		require.Equal(t, 2, bits.OnesCount32(test.Want^test.Got))
		test.Want, test.Got = 0, 0
		require.Equal(t, wire.MemoryTest{Bytes: 65536, Passes: 2, BadWords: 2, BadBits: 4, FirstBad: 32768}, test)
	})
	t.Run("far out, where only the GPU looks", func(t *testing.T) {
		o := run(t, "bad_words=3")
		require.Equal(t, wire.StateFail, o.last(t).State)
		require.Equal(t, wire.CUDAFill, o.last(t).Step)
		require.Equal(t, uint64(6), of[wire.FillTest](t, o, wire.CUDAFill).BadWords, "three in each pass")
	})
}

func TestWrongProduct(t *testing.T) {
	for _, test := range []struct{ name, values, got string }{
		{"one too much", "wrong_result=1", ""},
		{"not a number", "nan_result=1", "NaN"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := scene{args: "compute --n 64 --gpu " + gpufake.UUID(0), values: test.values}.run(t)
			require.Equal(t, wire.StateFail, o.last(t).State)
			result := of[wire.Compute](t, o, wire.CUDACompute)
			require.True(t, result.Wrong)
			require.Equal(t, [2]int{32, 21}, [2]int{result.Row, result.Col})
			if test.got != "" {
				require.Equal(t, test.got, result.Got)
				return
			}
			require.NotEmpty(t, result.Got)
			require.NotEqual(t, "NaN", result.Got)
		})
	}
}

// Without the compiler the memory may be as good as ever.
func TestFill_WithoutCompiler(t *testing.T) {
	for _, code := range []string{"209", "218", "221", "222", "223"} {
		t.Run(code, func(t *testing.T) {
			o := scene{args: "memory --gpu " + gpufake.UUID(0) + small, rules: "cuModuleLoadDataEx=" + code}.run(t)
			require.Equal(t, wire.CUDATeardown, o.last(t).Step)
			require.Equal(t, wire.StateOK, o.last(t).State)
			i := slices.IndexFunc(o.lines, func(l wire.Line) bool { return l.Step == wire.CUDAFill && l.State == wire.StateSkip })
			require.GreaterOrEqual(t, i, 0)
			require.Equal(t, "cuModuleLoadDataEx", o.lines[i].Call)
			require.NotZero(t, o.lines[i].Code)
		})
	}
}

func TestPeer(t *testing.T) {
	args := "peer --from " + gpufake.UUID(0) + " --to " + gpufake.UUID(1)
	t.Run("arrives corrupt", func(t *testing.T) {
		o := scene{args: args, gpus: 2, values: "0.p2p_corrupt=1"}.run(t)
		require.Equal(t, wire.StateFail, o.last(t).State)
		require.Equal(t, uint64(16), of[wire.Peer](t, o, wire.CUDAPeer).BadWords)
	})
	t.Run("not possible", func(t *testing.T) {
		o := scene{args: args, gpus: 2, values: "1.p2p=0"}.run(t)
		require.Equal(t, wire.StateOK, o.last(t).State)
		require.Equal(t, wire.Peer{From: gpufake.UUID(0), To: gpufake.UUID(1)}, of[wire.Peer](t, o, wire.CUDAPeer))
	})
	t.Run("to itself", func(t *testing.T) {
		o := scene{args: strings.ReplaceAll(args, gpufake.UUID(1), gpufake.UUID(0)), gpus: 2}.run(t)
		require.False(t, of[wire.Peer](t, o, wire.CUDAPeer).Possible)
	})
}

func TestLibrary(t *testing.T) {
	list := func(t *testing.T, library func(path string)) wire.Line {
		t.Helper()
		dir := t.TempDir()
		library(filepath.Join(dir, "libcuda.so.1"))
		return scene{args: "list", env: []string{"LD_LIBRARY_PATH=" + dir}}.run(t).last(t)
	}
	t.Run("is not one", func(t *testing.T) {
		line := list(t, func(path string) { require.NoError(t, os.WriteFile(path, []byte("no ELF"), 0o600)) })
		require.Equal(t, wire.StateFail, line.State)
		require.Zero(t, line.Code, "it is there")
		require.Contains(t, line.Detail, "libcuda.so.1 cannot be loaded")
	})
	t.Run("lacks what is needed", func(t *testing.T) {
		line := list(t, func(path string) {
			other, err := dynlib.Open("libm.so.6")
			require.NoError(t, err)
			var abs func(int32) int32
			require.NoError(t, other.Bind(&abs, "abs"))
			require.NoError(t, os.Symlink(other.Path, path))
		})
		require.Equal(t, wire.StateFail, line.State)
		require.Equal(t, "cuDriverGetVersion", line.Call)
	})
}
