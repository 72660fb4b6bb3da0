package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"runpodctl-worker/internal/checks"
)

const (
	programEnv = "TUI_TEST_PROGRAM"
	deafEnv    = "TUI_TEST_DEAF" // to SIGHUP, as below nohup
)

// program is a small doctor. Its checks are those of one name.
func program(name string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if os.Getenv(deafEnv) != "" {
		signal.Ignore(syscall.SIGHUP)
	}
	o := Options{
		Document: Document{Title: "test doctor", Version: "0.0.0", Host: []checks.Fact{{Name: "os", Value: "Linux"}}},
		Steps:    programs[name](), Runner: checks.NewRunner(checks.Options{SideBySide: 4}),
		In: os.Stdin, Out: os.Stdout, Color: true,
	}
	report, err := Run(ctx, o)
	switch {
	case errors.Is(err, ErrInterrupted):
		fmt.Println("end: interrupted")
		return 130
	case err != nil:
		fmt.Println("end:", err)
		return 1
	case len(report.Fatal()) > 0:
		fmt.Println("end: unfit")
		return 1
	}
	fmt.Println("end: fit")
	return 0
}

var programs = map[string]func() []checks.Step{
	"mixed": func() []checks.Step {
		return steps(
			check("memory", "Memory", checks.Early, checks.Result{Summary: "184.9 GB available"}),
			check("disk", "Disk", checks.Early, checks.Result{
				Status: checks.Fail, Summary: "3 % free", Remedy: "Free some space.",
			}),
			checks.Check{
				ID: "counter", Title: "Counter", Phase: checks.Start,
				Run: counter(),
			},
			checks.Check{
				ID: "broken", Title: "Broken", Phase: checks.Start,
				Run: func(context.Context) checks.Result { panic("in a check") },
			},
		)
	},
	"fit": func() []checks.Step {
		return steps(check("memory", "Memory", checks.Early, checks.Result{Summary: "184.9 GB available"}))
	},
	"panics": func() []checks.Step {
		runs := 0
		memory := check("memory", "Memory", checks.Early, checks.Result{})
		memory.Run = func(context.Context) checks.Result {
			if runs++; runs > 1 {
				return checks.Result{Status: 99} // none, over which the screen itself falls
			}
			return checks.Result{Summary: "184.9 GB available"}
		}
		return steps(memory)
	},
	"hangs": func() []checks.Step {
		return steps(
			check("memory", "Memory", checks.Early, checks.Result{Summary: "184.9 GB available"}),
			checks.Check{
				ID: "stuck", Title: "Stuck", Phase: checks.Early,
				Run: func(context.Context) checks.Result { select {} },
			},
		)
	},
	"show": func() []checks.Step { // to look at by hand
		var list []checks.Step
		for i, row := range scene() {
			step, res := row.Step, row.Result
			step.Run = func(ctx context.Context) checks.Result {
				select {
				case <-time.After(time.Duration(i) * 40 * time.Millisecond):
				case <-ctx.Done():
				}
				return res
			}
			list = append(list, step)
		}
		return list
	},
}

func counter() func(context.Context) checks.Result {
	n := 0
	return func(context.Context) checks.Result {
		n++
		return checks.Result{Summary: fmt.Sprintf("run number %d", n)}
	}
}

// steps are the steps of checks in the order given.
func steps(list ...checks.Check) []checks.Step {
	var suite checks.Suite
	if err := suite.Add(list...); err != nil {
		panic(err)
	}
	return suite.Plan()
}

func check(id, title string, phase checks.Phase, res checks.Result) checks.Check {
	return checks.Check{
		ID: id, Title: title, Phase: phase, Vital: true,
		Run: func(context.Context) checks.Result { return res },
	}
}

// row is a result with its step.
func rowOf(id, title string, phase checks.Phase, took time.Duration, res checks.Result) checks.Row {
	return checks.Row{Step: checks.Step{Check: check(id, title, phase, res), In: phase}, Result: res, Took: took}
}

// scene is a report with something of everything.
func scene() []checks.Row {
	const ms = time.Millisecond
	return []checks.Row{
		rowOf("memory", "Memory", checks.Early, 3*ms, checks.Result{
			Summary:   "184.9 GB available of 247.5 GB",
			Threshold: &checks.Threshold{Value: 4.0, Text: "at least 4 GB available", Origin: "default"},
			Facts: []checks.Fact{
				{Name: "available_gb", Value: 184.9, Text: "184.9 GB"},
				{Name: "limit_gb", Value: 247.5, Text: "247.5 GB"},
				{Name: "source", Value: "cgroup v2"},
			},
		}),
		rowOf("disk", "Disk space", checks.Early, 12*ms, checks.Result{
			Status: checks.Warn, Summary: "11 % of / is free, less than the 15 % that were asked for",
			Remedy:    "Delete what is not needed, or give the endpoint a larger container disk.",
			Threshold: &checks.Threshold{Value: 15.0, Text: "at least 15 % free", Origin: "RUNPOD_MIN_DISK_PERCENT"},
			Facts:     []checks.Fact{{Name: "free_percent", Value: 11.2, Text: "11.2 %"}, {Name: "path", Value: "/"}},
		}),
		rowOf("cuda_version", "CUDA version", checks.Early, 214*ms, checks.Result{
			Summary: "driver 570.86.15 speaks CUDA 12.8",
			Facts:   []checks.Fact{{Name: "driver", Value: "570.86.15"}, {Name: "cuda", Value: "12.8"}},
		}),
		rowOf("gpu_memory", "GPU memory", checks.Early, 1384*ms, checks.Result{
			Status: checks.Fail, Summary: "GPU 1 gave back 3 wrong words of 67108864",
			Remedy: "This GPU's memory is broken. Terminate the pod, so that it starts on another machine, " +
				"and report the machine with the UUID below.",
			Threshold: &checks.Threshold{Value: 0, Text: "every word as it was written", Origin: "default"},
			Facts: []checks.Fact{
				{Name: "gpus", Value: 2},
				{Name: "broken", Value: []string{"GPU-5b1e6b1c-0d2f-7a39-8f3e-3c2b7c0a9d11"}},
				{Name: "first_bad_byte", Value: 4096, Text: "4096 (0x1000)"},
			},
			Output: "cuda.memory\tGPU 0\tok\n\x1b[31mcuda.memory\tGPU 1\t3 bad words\x1b[0m\nwant 0xdeadbeef, got 0xdeadbeee",
		}),
		rowOf("gpu_health", "GPU health", checks.Early, 95*ms, checks.Result{
			Status: checks.Error, Summary: "NVML did not load: libnvidia-ml.so.1 is missing",
			Remedy: "Start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
		}),
		rowOf("system", "System", checks.Early, 0, checks.Skipped("RUNPOD_SKIP_AUTO_SYSTEM_CHECKS is set")),
		rowOf("disk", "Disk space", checks.Start, 9*ms, checks.Result{Summary: "62 % of / is free"}),
		rowOf("network", "Network", checks.Start, 48*ms, checks.Result{Summary: "api.runpod.ai:443 answers in 41 ms"}),
		rowOf("cuda_init", "CUDA context", checks.Start, 731*ms, checks.Result{Summary: "2 GPUs"}),
		rowOf("gpu_benchmark", "GPU benchmark", checks.Start, 402*ms, checks.Result{
			Summary: "38.1 TFLOP/s at the least", Facts: []checks.Fact{{Name: "best_ms", Value: 0.06}},
		}),
		rowOf("user.model", "モデルの重み 🤖", checks.Start, 12*time.Second, checks.Result{Summary: "14 files, 26.1 GB"}),
		rowOf("user.tokenizer", "Tokenizer", checks.Start, 65*time.Second, checks.Result{
			Status: checks.Warn, Summary: strings.Repeat("slow ", 20), Remedy: "Use the fast one.",
		}),
	}
}
