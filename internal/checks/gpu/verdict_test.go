package gpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/wire"
)

func TestConclude(t *testing.T) {
	good := checks.Result{Summary: "good", Said: "good", Facts: []checks.Fact{{Name: "a"}}}
	require.Equal(t, good, conclude(good, nil, 3))
	found := []finding{
		{status: checks.Warn, unit: "GPU 0", text: "warm", remedy: "Cool it."},
		{status: checks.Fail, unit: "GPU 1", text: "broken", remedy: "Mend it.", kind: "TimeoutError"},
		{status: checks.Fail, unit: "GPU 2", text: "broken", remedy: "Mend it."},
		{status: checks.Skip, unit: "GPU 3", text: "busy"},
	}
	res := conclude(good, found, 2)
	require.Equal(t, checks.Result{
		Status: checks.Fail, Kind: "TimeoutError", Summary: "GPU 1: broken; GPU 2: broken; and 2 more", Remedy: "Mend it.", Facts: good.Facts,
	}, res)
	require.Equal(t, "GPU 1: broken; and 3 more", conclude(good, found, 0).Summary)
	require.Equal(t, checks.Skip, conclude(good, found[3:], 1).Status)
}

func TestCodes_HaveWords(t *testing.T) {
	tables := map[string]map[int]code{cudaPrefix: cudaCodes, nvmlPrefix: nvmlCodes}
	for prefix, ids := range map[string][]int{
		cudaPrefix: {
			1, 2, 3, 4, 34, 36, 46, 100, 101, 102, 200, 201, 209, 214, 218, 220, 221, 222, 223, 226, 304, 400, 500, 600, 700, 701, 702,
			709, 710, 714, 715, 716, 717, 718, 719, 800, 801, 802, 803, 804, 805, 806, 807, 808, 809, 810, 916, 999,
		},
		nvmlPrefix: {1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 25, 26, 27, 28, 29, 999},
	} {
		table := tables[prefix]
		require.Len(t, table, len(ids))
		step := wire.CUDAInit
		if prefix == nvmlPrefix {
			step = wire.NVMLInit
		}
		for _, id := range ids {
			require.NotEmpty(t, table[id].name, "%s%d", prefix, id)
			f := failed("GPU 0", wire.Line{Step: step, State: wire.StateFail, Code: id, Call: "call"})
			require.Contains(t, f.text, fmt.Sprintf("(%s%s, %d, from call)", prefix, table[id].name, id))
			require.NotEmpty(t, f.remedy)
		}
	}
	f := failed("", wire.Line{Step: wire.CUDAContext, State: wire.StateFail, Code: 4711})
	require.Equal(t, "creating a context failed (code, 4711)", f.text)
}

func TestSteps_AreAllKnown(t *testing.T) {
	for _, s := range []wire.Step{
		wire.CUDALoad, wire.CUDAInit, wire.CUDAList, wire.CUDAContext, wire.CUDAMemory, wire.CUDAFill, wire.CUDACompile,
		wire.CUDACompute, wire.CUDAPeer, wire.CUDATeardown, wire.NVMLLoad, wire.NVMLInit, wire.NVMLList, wire.NVMLHealth,
		wire.NVMLWatch, wire.NVMLEvent,
	} {
		require.NotEmpty(t, steps[s].words, s)
		require.Positive(t, steps[s].limit, s)
	}
	require.Equal(t, "cuda.new", doing("cuda.new"))
}

func line(step wire.Step, state wire.State, code int, value any) wire.Line {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return wire.Line{Step: step, State: state, Code: code, Data: text, Detail: "words"}
}

func TestTrial_Findings(t *testing.T) {
	free := line(wire.CUDAContext, wire.StateOK, 0, wire.Memory{Free: 3 << 20, Total: 81559 << 20})
	for _, tt := range []struct {
		name  string
		lines []wire.Line
		err   error
		want  string
	}{
		{"nothing", []wire.Line{free}, nil, ""},
		{"full", []wire.Line{free, line(wire.CUDAMemory, wire.StateFail, 2, wire.MemoryTest{Bytes: 16 << 20})}, nil, "GPU 2: cannot allocate 16 MiB (free 3 of 81559 MiB)"},
		{"full for a page", []wire.Line{free, line(wire.CUDAMemory, wire.StateFail, 2, wire.MemoryTest{Bytes: 4 << 10})}, nil, "GPU 2: cannot allocate 4 KiB (free 3 of 81559 MiB)"},
		{"full in the larger test", []wire.Line{free, line(wire.CUDAFill, wire.StateFail, 2, wire.FillTest{Bytes: 1 << 30})}, nil, "GPU 2: cannot allocate 1.0 GB (free 3 of 81559 MiB)"},
		{
			"a bit",
			[]wire.Line{line(wire.CUDAMemory, wire.StateFail, 0, wire.MemoryTest{Bytes: 16 << 20, Passes: 2, BadWords: 1, BadBits: 1, FirstBad: 0x800000, Want: 0xff, Got: 0xfe})},
			nil,
			"GPU 2: memory read back differs: 1 of 8388608 words (1 bits), first at byte 0x800000: wrote 0x000000ff, read 0x000000fe",
		},
		{"words on the device", []wire.Line{line(wire.CUDAFill, wire.StateFail, 0, wire.FillTest{Bytes: 1 << 30, BadWords: 7})}, nil, "GPU 2: memory does not hold what was written: 7 words of 1.0 GB"},
		{"a product", []wire.Line{line(wire.CUDACompute, wire.StateFail, 0, wire.Compute{Wrong: true, Row: 341, Col: 12, Want: 52, Got: "NaN"})}, nil, "GPU 2: wrong result: c[341][12] = NaN, want 52"},
		{"the compiler's words", []wire.Line{line(wire.CUDACompile, wire.StateFail, 218, nil)}, nil, "GPU 2: the driver's compiler refused the test's kernel (CUDA_ERROR_INVALID_PTX, 218): words"},
		{"a failure, then a death", []wire.Line{line(wire.CUDAMemory, wire.StateFail, 214, nil)}, deathError{how: "SIGSEGV"}, "GPU 2: an uncorrectable memory error (CUDA_ERROR_ECC_UNCORRECTABLE, 214)"},
		{"a death", nil, deathError{how: "SIGSEGV"}, "GPU 2: the driver ended the test: SIGSEGV"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found := trial{unit{name: "GPU 2"}, tt.lines, tt.err}.findings()
			if tt.want == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Equal(t, tt.want, found[0].String())
			require.Equal(t, checks.Fail, found[0].status)
			require.NotEmpty(t, found[0].remedy)
		})
	}
	off := trial{lines: []wire.Line{line(wire.CUDACompile, wire.StateFail, cudaJITDisabled, nil)}}
	require.Equal(t, checks.Skip, off.findings()[0].status, "somebody switched the compiler off: that says nothing about the GPU")
}

func TestJudgeCompute(t *testing.T) {
	took := func(ms float64) trial {
		return trial{unit: unit{name: "GPU 0"}, lines: []wire.Line{line(wire.CUDACompute, wire.StateOK, 0, wire.Compute{N: 1024, MeanMS: ms})}}
	}
	for _, tt := range []struct {
		name  string
		trial trial
		limit time.Duration
		want  checks.Status
	}{
		{"quick", took(0.5), 2 * time.Second, checks.Pass},
		{"at the edge", took(100), 2 * time.Second, checks.Pass},
		{"slow", took(101), 2 * time.Second, checks.Warn},
		{"over the limit", took(2001), 2 * time.Second, checks.Fail},
		{"over a limit of the user's own", took(60), 50 * time.Millisecond, checks.Fail},
		{"not measured", trial{}, 2 * time.Second, checks.Error},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, worst(judgeCompute(tt.trial, tt.limit))) })
	}
}

func TestNeighbours(t *testing.T) {
	for _, tt := range []struct {
		name  string
		units []unit
		want  string
	}{
		{"none", nil, "[]"},
		{"one", []unit{{name: "0"}}, "[]"},
		{"three", []unit{{name: "0"}, {name: "1"}, {name: "2"}}, "[0 → 1 1 → 0 1 → 2 2 → 1]"},
		{"slices", []unit{{name: "0", slice: true}, {name: "1", slice: true}}, "[]"},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, fmt.Sprint(neighbours(tt.units))) })
	}
}

func TestJudgePeer(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lines []wire.Line
		err   error
		want  string
	}{
		{"fine", []wire.Line{line(wire.CUDAPeer, wire.StateOK, 0, wire.Peer{Possible: true, Bytes: 64})}, nil, ""},
		{"not possible", []wire.Line{line(wire.CUDAPeer, wire.StateOK, 0, wire.Peer{})}, nil, ""},
		{"damaged", []wire.Line{line(wire.CUDAPeer, wire.StateFail, 0, wire.Peer{Possible: true, Bytes: 64, BadWords: 3})}, nil, "a copy between the GPUs arrives damaged: 3 of 16 words"},
		{"failed", []wire.Line{line(wire.CUDAPeer, wire.StateFail, 719, nil)}, nil, "a copy between the GPUs fails: the test's kernel failed (CUDA_ERROR_LAUNCH_FAILED, 719)"},
		{"hung", nil, hangError{limit: time.Second}, "a copy between the GPUs fails: no answer within 1s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found := judgePeer(pair{unit{name: "GPU 0"}, unit{name: "GPU 1"}}, tt.lines, tt.err)
			if tt.want == "" {
				require.Empty(t, found)
				return
			}
			require.Equal(t, "GPU 0 → GPU 1: "+tt.want, found[0].String())
			require.Equal(t, checks.Warn, found[0].status)
			require.Contains(t, found[0].remedy, "NCCL_P2P_DISABLE=1")
		})
	}
}

func TestJudgeUserTest(t *testing.T) {
	const sdk = "CUDA Driver Version: 12.8\nLinux Kernel Version: 6.1\nFound 2 GPUs:\nGPU 0: NVIDIA Error Edition (UUID: GPU-1)\nECC error counter: 0\nfailed: 0 of 2\n" +
		"GPU 0 memory allocation test passed.\nGPU 1 memory allocation test passed.\n"
	for _, tt := range []struct {
		name, text    string
		err           error
		status        checks.Status
		summary, said string
	}{
		{"passed", strings.Replace(sdk, "failed: 0 of 2\n", "", 1), nil, checks.Pass, "2 GPUs passed", "GPU binary test passed: 2 GPU(s) healthy (CUDA 12.8)"},
		{"short words", "GPU 0: PASS\n", nil, checks.Pass, "1 GPU passed", "GPU binary test passed: 1 GPU(s) healthy (CUDA unknown)"},
		{"one failed", "Found 2 GPUs:\nGPU 0: PASS\nGPU 1: FAIL (out of memory)\n", nil, checks.Fail, "GPU 1: FAIL (out of memory)", "GPU memory allocation test failed: GPU 1: FAIL (out of memory)"},
		{"a call failed", "Found 1 GPUs:\ncudaMalloc failed: out of memory\n", nil, checks.Fail, "cudaMalloc failed: out of memory", "GPU memory allocation test failed: cudaMalloc failed: out of memory"},
		{"many", "Failed to open a\nFailed to open b\nFailed to open c\n", nil, checks.Fail, "Failed to open a; Failed to open b; and 1 more", ""},
		{"one is missing", "Found 2 GPUs:\nGPU 0 memory allocation test passed.\n", nil, checks.Fail, "it found 2 GPUs, and only 1 passed", ""},
		{"it says nothing", "", nil, checks.Fail, "it says of no GPU that it passed", ""},
		{"it exits badly", "GPU 0: PASS\n", toolError{"gpu_test", "exit code 3"}, checks.Fail, "gpu_test failed: exit code 3", ""},
		{"it hangs", "GPU 0: PASS\n", silenceError{name: "gpu_test", limit: 30 * time.Second}, checks.Fail, "the GPU test did not end within 30s", "GPU test binary timed out after 30s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := judgeUserTest(parseUserTest(tt.text), tt.err, 2)
			require.Equal(t, tt.status, res.Status, res.Summary)
			require.Contains(t, res.Summary, tt.summary)
			require.Contains(t, res.Said, tt.said)
		})
	}
}

func TestUserTest(t *testing.T) {
	dir := t.TempDir()
	run := func(path string) checks.Result {
		d := machine{nodes: 1, helpers: []Helper{}, config: []string{"RUNPOD_BINARY_GPU_TEST_PATH=" + path}}.start(t)
		return run1(t, d.Memory())
	}
	res := run(script(t, dir, "gpu_test", "echo Found 1 GPUs:; echo GPU 0 memory allocation test passed."))
	require.Equal(t, checks.Pass, res.Status, res.Summary)
	require.Contains(t, res.Output, "Found 1 GPUs:")
	res = run(dir + "/gone")
	require.Equal(t, checks.Error, res.Status)
	require.Equal(t, "FileNotFoundError", res.Kind)
	write(t, dir, map[string]string{"text": ""})
	require.Equal(t, "PermissionError", run(dir+"/text").Kind)
}

func FuzzParseUserTest(f *testing.F) {
	f.Add("Found 2 GPUs:\nGPU 0 memory allocation test passed.\nGPU 1: FAIL")
	f.Fuzz(func(t *testing.T, text string) {
		res := judgeUserTest(parseUserTest(text), nil, 3)
		require.NotEmpty(t, res.Summary)
	})
}

func TestTrouble_OfAnythingElse(t *testing.T) {
	require.Equal(t, checks.Error, trouble("", rubbishError{CUDAHelper, errors.New("x")}).status)
}

// What a code means and what to do is documented from the tables.
func TestCodes_AreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/gpu.md")
	require.NoError(t, err)
	for _, table := range []map[int]code{cudaCodes, nvmlCodes} {
		for id, c := range table {
			if c.text != "" {
				require.Contains(t, string(page), fmt.Sprintf("| %d | %s | %s | %s |", id, c.name, c.text, c.remedy))
			}
		}
	}
	for _, x := range xids {
		require.Contains(t, string(page), xidRow(x))
	}
}

func xidRow(x xid) string {
	ids := make([]string, len(x.ids))
	for i, id := range slices.Sorted(slices.Values(x.ids)) {
		ids[i] = fmt.Sprint(id)
	}
	verdict := x.status.String()
	if x.status == checks.Pass {
		verdict = "nothing"
	}
	return fmt.Sprintf("| %s | %s | %s |", strings.Join(ids, " "), x.text, verdict)
}
