package gpu

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/internal/proc"
)

const (
	begin = `{"step":"cuda.context","state":"begin","gpu":0}` + "\n"
	ok    = `{"step":"cuda.context","state":"ok","gpu":0,"ms":1.5}` + "\n"
	end   = `{"state":"end","gpu":-1}` + "\n"
)

func TestAsk(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		want         string // the error; empty: none
		status       checks.Status
		lines        int
	}{
		{"to the end", begin + ok + end, "", checks.Pass, 1},
		{"with code 1 after the end", begin + ok + end + "exit 1", "", checks.Pass, 1},
		{"dies at exit, after the end", begin + ok + end + "segv", "the driver ended the test: SIGSEGV: segmentation violation", checks.Fail, 1},
		{"is killed at exit", begin + ok + end + "kill", "the driver ended the test: killed by SIGKILL, likely out of memory", checks.Fail, 1},
		{"dies in a step", begin + "segv", "the driver crashed while creating a context: SIGSEGV: segmentation violation", checks.Fail, 0},
		{"exits in a step", begin + "exit 3", "the driver crashed while creating a context: exit code 3", checks.Fail, 0},
		{"exits in a step as if all were well", begin + "exit 0", "the driver crashed while creating a context: it ended without an answer", checks.Fail, 0},
		{"exits without an end", begin + ok + "exit 0", "the driver ended the test: it ended without an answer", checks.Fail, 1},
		{
			"a symbol is missing", begin + "say x: symbol lookup error: x: undefined symbol: nvmlFoo\nexit 127",
			"the driver crashed while creating a context: x: symbol lookup error: x: undefined symbol: nvmlFoo", checks.Fail, 0,
		},
		{
			"the loader refuses it", "say x: /lib/libc.so.6: version `GLIBC_2.34' not found\nexit 1",
			"the cuda helper does not start: x: /lib/libc.so.6: version `GLIBC_2.34' not found", checks.Error, 0,
		},
		{"says nothing", "exit 0", "the cuda helper does not start: it ended without an answer", checks.Error, 0},
		{"rubbish", begin + "rubbish", "the cuda helper's report makes no sense: a line that is no report: ", checks.Error, 0},
		{"a state that is none", `{"state":"maybe"}`, `the cuda helper's report makes no sense: a line with the state "maybe"`, checks.Error, 0},
		{"10 MB without a newline", begin + "bytes 10000000", "the cuda helper's report makes no sense: bufio.Scanner: token too long", checks.Error, 0},
		{"lines without an end", begin + "lines 20000", "the cuda helper's report makes no sense: more than 10000 lines", checks.Error, 0},
		{"a child of it keeps the pipes", begin + ok + "child\n" + end, "", checks.Pass, 2},
		{"closes its report and goes on for a while", begin + ok + end + "close\nsay still here", "", checks.Pass, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, q := scripted(tt.script)
			lines, err := h.ask(t.Context(), q)
			require.Len(t, lines, tt.lines)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
			f := trouble("GPU 0", err)
			require.Equal(t, tt.status, f.status)
			require.NotEmpty(t, f.remedy)
		})
	}
}

func TestAsk_ADaemonThatKeepsThePipeHoldsNobodyUp(t *testing.T) {
	h, q := scripted(begin + ok + "daemon\n" + end)
	lines, err := h.ask(t.Context(), q)
	require.NoError(t, err)
	require.Len(t, lines, 2)
	pid, err := strconv.Atoi(lines[1].Detail)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL), "it still runs, and is ours to end")
}

func TestAsk_KillsWhatHangs(t *testing.T) {
	soon := 50 * time.Millisecond
	for _, tt := range []struct {
		name, script string
		from         wire.State // from then on time is short
		want         string
	}{
		{"in a step", begin + "hang", wire.StateBegin, "no answer within 50ms while creating a context"},
		{"between two steps", begin + ok + "hang", wire.StateOK, "no answer within 50ms"},
		{"after the end", begin + ok + end + "close\nhang", wire.StateEnd, "no answer within 50ms"},
		{"before its first step", "hang", "", "no answer within 50ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, q := scripted(tt.script)
			if tt.from == "" {
				h.between = soon
			}
			q.seen = func(l wire.Line) {
				if l.State == tt.from {
					h.between = soon
					h.limit = func(wire.Step) time.Duration { return soon }
				}
			}
			_, err := h.ask(t.Context(), q)
			require.EqualError(t, err, tt.want)
			require.True(t, silent(err))
			require.Equal(t, "TimeoutError", trouble("", err).kind)
		})
	}
	t.Run("its whole group", func(t *testing.T) {
		h, q := scripted("child\n" + begin + "hang")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		q.seen = func(l wire.Line) {
			if l.State == wire.StateBegin {
				cancel(errors.New("enough"))
			}
		}
		lines, err := h.ask(ctx, q)
		require.EqualError(t, err, "enough while creating a context")
		pid, err := strconv.Atoi(lines[0].Detail)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, time.Minute, 5*time.Millisecond)
	})
}

func TestAsk_WithoutAHelper(t *testing.T) {
	h, q := scripted("")
	h.locate = func(Helper) (Program, error) { return Program{}, fs.ErrNotExist }
	_, err := h.ask(t.Context(), q)
	require.EqualError(t, err, "no GPU helper: file does not exist")

	h.locate = func(Helper) (Program, error) { return Program{Path: t.TempDir() + "/gone"}, nil }
	_, err = h.ask(t.Context(), q)
	require.EqualError(t, err, "the cuda helper needs glibc, which is not here", "what a missing loader looks like")
	require.Equal(t, checks.Error, trouble("", err).status)
}

func TestAsk_LeavesBehindWhatNoSignalEnds(t *testing.T) {
	h, q := scripted(begin + "hang")
	var left *proc.Process
	h.kill = func(p *proc.Process) error {
		left = p
		return errors.New("still there")
	}
	h.limit = func(wire.Step) time.Duration { return 50 * time.Millisecond }
	_, err := h.ask(t.Context(), q)
	require.EqualError(t, err, "no answer within 50ms while creating a context; the process is stuck in the kernel and cannot be killed")
	require.Equal(t, "Reboot the host: the driver hangs.", trouble("GPU 1", err).remedy)
	require.NoError(t, left.Kill())
}

func TestLocate(t *testing.T) {
	dir := t.TempDir()
	_, err := Locate(lookup("RUNPODCTL_WORKER_PROBES=" + dir))(CUDAHelper)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "RUNPODCTL_WORKER_PROBES: ")

	path := script(t, dir, "runpodctl-worker-cuda-probe", "exit 0")
	program, err := Locate(lookup("RUNPODCTL_WORKER_PROBES=" + dir))(CUDAHelper)
	require.NoError(t, err)
	require.Equal(t, path, program.Path)

	_, err = Locate(lookup())(NVMLHelper)
	require.ErrorIs(t, err, fs.ErrNotExist, "neither beside the test binary nor inside it")
	require.ErrorContains(t, err, "the nvml helper is not in this binary")
}

func TestProgram_RunsFromMemoryAndFromAFile(t *testing.T) {
	image, err := os.ReadFile("/bin/true")
	require.NoError(t, err)
	if string(image[:2]) == "#!" {
		t.Skip("/bin/true is a script here")
	}
	for name, place := range map[string]func(io.Reader) (Program, error){
		"where unpack puts it": func(from io.Reader) (Program, error) { return unpack(CUDAHelper, from) },
		"a file": func(from io.Reader) (Program, error) {
			program, err := inFile("helper")
			require.NoError(t, err)
			return program, program.fill(from)
		},
	} {
		t.Run(name, func(t *testing.T) {
			program, err := place(strings.NewReader(string(image)))
			require.NoError(t, err)
			h, q := scripted("")
			h.locate = func(Helper) (Program, error) { return program, nil }
			_, err = h.ask(t.Context(), q)
			require.ErrorContains(t, err, "it ended without an answer", "it ran, and is no helper")
			if program.trash != "" {
				require.NoFileExists(t, program.trash)
			}
		})
	}
}

func TestUnpack_ThatBreaksOff(t *testing.T) {
	_, err := unpack(NVMLHelper, io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errors.New("gone"))))
	require.EqualError(t, err, "unpack the nvml helper: gone")
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte(begin))
	f.Add([]byte(`{"state":"end"}`))
	f.Add([]byte(`{"step":"nvml.health","state":"ok","gpu":1,"data":{"index":1,"eccVolatile":3}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		line, err := parseLine(text)
		if err != nil {
			return
		}
		inv := inventoryOf([]wire.Line{line}, nil)
		for _, h := range inv.health {
			examine(h)
		}
		s := &survey{cuda: listingOf([]wire.Line{line}, nil), nvml: inv}
		s.units(false)
		versionsOf(s).judge(configOf().MinCUDA)
		trial{lines: []wire.Line{line}}.findings()
	})
}
