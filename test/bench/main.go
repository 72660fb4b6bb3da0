// Command bench measures the worker and the emulator beside the official Python SDK, in turns and in one run,
// and prints a table of ratios. Absolute figures say more about the machine than about the programs; the
// ratios are what is held to a bound.
//
//	RUNPODCTL_TEST_PYTHON=.venv/bin/python go run ./test/bench -bin bin/runpodctl-worker
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// bench is one run.
type bench struct {
	bin, python string // what is compared; python has the official package
	reps        int
	dir         string // logs and built helpers
}

// section measures one thing or a few that belong together.
type section struct {
	name    string
	measure func(*bench) ([]comparison, error)
}

var sections = []section{
	{"startup", (*bench).startup},
	{"boot", (*bench).boot},
	{"throughput", (*bench).throughput},
	{"large", (*bench).large},
	{"stream", (*bench).stream},
	{"added", (*bench).added},
	{"busy", (*bench).busy},
	{"gateway", (*bench).gateway},
	{"heartbeat", (*bench).heartbeat},
	{"refused", (*bench).refused},
	{"stop", (*bench).stop},
	{"early", (*bench).early},
	{"doctor", (*bench).doctor},
	{"memory", (*bench).memory},
	{"help", (*bench).help},
	{"size", (*bench).size},
	{"runsync", (*bench).runSync},
	{"api", (*bench).api},
	{"queue", (*bench).queue},
	{"volume", (*bench).volume},
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	var names []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	bin := flag.String("bin", "bin/runpodctl-worker", "the binary to measure")
	reps := flag.Int("reps", 3, "repetitions of what takes seconds; what takes less is repeated more often")
	only := flag.String("only", strings.Join(names, ","), "sections to measure")
	loopAt := flag.String("bare-loop", "", "internal: run the bare loop against this server, or \""+fromEnv+"\": the worker's")
	concurrency := flag.Int("concurrency", 1, "internal: of the bare loop")
	flag.Parse()
	if *loopAt != "" {
		return bareLoop(*loopAt, *concurrency)
	}

	b := &bench{reps: *reps}
	var err error
	b.bin, err = filepath.Abs(*bin)
	if err != nil {
		return err
	}
	b.python, err = filepath.Abs(cmp.Or(os.Getenv("RUNPODCTL_TEST_PYTHON"), ".venv/bin/python"))
	if err != nil {
		return err
	}
	b.dir, err = os.MkdirTemp("", "runpodctl-worker-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)

	wanted := strings.Split(*only, ",")
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			return fmt.Errorf("no section %q; there are %s", name, strings.Join(names, ", "))
		}
	}
	if err := b.introduce(); err != nil {
		return err
	}
	return b.measure(wanted)
}

// introduce says what is measured where.
func (b *bench) introduce() error {
	version, err := exec.Command(b.bin, "--version").Output()
	if err != nil {
		return fmt.Errorf("%s --version: %w", b.bin, err)
	}
	sdk, err := exec.Command(b.python, "-c",
		"import importlib.metadata as m, platform as p; print('runpod', m.version('runpod'), 'on Python', p.python_version())").Output()
	if err != nil {
		return fmt.Errorf("%s has no runpod package: %w", b.python, err)
	}
	fmt.Printf("%s beside %s, %s, %d cores, %s\n\n", strings.TrimSpace(string(version)), strings.TrimSpace(string(sdk)),
		runtime.Version(), runtime.NumCPU(), time.Now().Format(time.DateOnly))
	writeHead(os.Stdout)
	return nil
}

// measure goes on after a section that fails, and reports it at the end.
func (b *bench) measure(wanted []string) error {
	var failed []error
	for _, s := range sections {
		if !slices.Contains(wanted, s.name) {
			continue
		}
		began := time.Now()
		lines, err := s.measure(b)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", s.name, err))
		}
		for _, line := range lines {
			line.write(os.Stdout)
		}
		fmt.Fprintf(os.Stderr, "%s took %s\n", s.name, time.Since(began).Round(time.Second))
	}
	return errors.Join(failed...)
}
