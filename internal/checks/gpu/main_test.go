package gpu

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/proc"
)

// scriptVariable makes the test binary a helper that does what the script says.
const scriptVariable = "GPU_TEST_SCRIPT"

func TestMain(m *testing.M) {
	if script, ok := os.LookupEnv(scriptVariable); ok {
		play(script)
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if built != "" {
			_ = os.RemoveAll(built)
		}
		os.Exit(code)
	}))
}

// play does one thing a line. What is no command is reported as it is.
func play(script string) {
	report := os.NewFile(wire.ReportFD, "report")
	for line := range strings.Lines(script) {
		command, argument, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch command {
		case "hang":
			signal.Ignore(syscall.SIGTERM)
			time.Sleep(10 * time.Minute)
		case "segv":
			_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
			select {}
		case "kill":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		case "exit":
			code, _ := strconv.Atoi(argument)
			os.Exit(code)
		case "say":
			fmt.Fprintln(os.Stderr, argument)
		case "child", "daemon": // somebody who keeps the pipes, in our group or out of it
			child := exec.Command("sleep", "600")
			child.ExtraFiles = []*os.File{report}
			child.Stdout, child.Stderr = os.Stdout, os.Stderr
			child.SysProcAttr = &syscall.SysProcAttr{Setsid: command == "daemon"}
			if err := child.Start(); err != nil {
				panic(err)
			}
			fmt.Fprintf(report, `{"step":"cuda.load","state":"ok","detail":"%d"}`+"\n", child.Process.Pid)
		case "bytes":
			n, _ := strconv.Atoi(argument)
			_, _ = io.WriteString(report, strings.Repeat("x", n))
		case "lines":
			n, _ := strconv.Atoi(argument)
			for range n {
				fmt.Fprintln(report, `{"state":"begin"}`)
			}
		case "close":
			_ = report.Close()
		case "stdin":
			_, _ = io.Copy(io.Discard, os.Stdin)
		default:
			fmt.Fprintln(report, strings.TrimSpace(line))
		}
	}
}

// scripted is a helper that plays a script.
func scripted(script string) (helpers, question) {
	h := helpers{
		locate:  func(Helper) (Program, error) { return Program{Path: os.Args[0]}, nil },
		limit:   func(wire.Step) time.Duration { return time.Minute },
		between: time.Minute,
		kill:    (*proc.Process).Kill,
	}
	return h, question{
		helper: CUDAHelper, args: []string{"list"},
		environ: append(os.Environ(), scriptVariable+"="+script, "GORACE=atexit_sleep_ms=0", "GOTRACEBACK=single"),
	}
}

// lookup is an environment of NAME=value entries.
func lookup(environ ...string) config.Lookup {
	return func(name string) (string, bool) { return variable(environ, name) }
}

func configOf(environ ...string) checks.Config { return checks.ConfigFrom(lookup(environ...)) }

// script is an executable file.
func script(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := dir + "/" + name
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700))
	return path
}
