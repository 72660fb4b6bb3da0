// Package declared makes checks of a file: what a user wants to hold before a worker takes jobs, without writing code.
package declared

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/config"
)

// GPU is what a check may know of one GPU.
type GPU struct {
	Index           int
	Name            string
	TotalGB, FreeGB float64
}

// Deps are what the checks ask beside files, sockets and processes.
type Deps struct {
	Lookup config.Lookup                            // the environment
	GPUs   func(ctx context.Context) ([]GPU, error) // those of this box
	Taken  []string                                 // ids that the file must not use: the builtin ones
}

// maxFile is the largest file of checks that is read.
const maxFile = 1 << 20

// Load reads a file of checks. Its error is one line with the file and the place in it.
func Load(ctx context.Context, path string, deps Deps) ([]checks.Check, error) {
	text, err := read(ctx, path)
	if err != nil {
		return nil, err
	}
	list, err := parse(text, deps)
	if err != nil {
		return nil, fmt.Errorf("%s%w", path, err)
	}
	return list, nil
}

// read reads a file. One that never ends, or has nothing to say, as a pipe may, is left behind when ctx ends.
func read(ctx context.Context, path string) ([]byte, error) {
	type answer struct {
		text []byte
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		f, err := os.Open(path)
		if err != nil {
			read <- answer{err: err}
			return
		}
		defer func() { _ = f.Close() }()
		text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
		if err == nil && len(text) > maxFile {
			err = fmt.Errorf("%s: larger than %d bytes", path, maxFile)
		}
		read <- answer{text, err}
	}()
	select {
	case a := <-read:
		return a.text, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// kind is what an entry proves.
type kind interface {
	run(ctx context.Context, deps Deps) checks.Result
}

// entry is one check of the file. Exactly one of its kinds is there.
type entry struct {
	Name     string   `yaml:"name"`
	Phase    phase    `yaml:"phase"`
	Timeout  duration `yaml:"timeout"`
	Severity severity `yaml:"severity"`

	Files     fileList   `yaml:"files"`
	Env       envList    `yaml:"env"`
	HTTP      *httpCall  `yaml:"http"`
	Exec      command    `yaml:"exec"`
	GPUMemory *gpuMemory `yaml:"gpu_memory_gb"`
	Disk      *diskSpace `yaml:"disk"`
}

// kinds are those that the entry has, by their keys.
func (e entry) kinds() (found []kind) {
	if e.Files != nil {
		found = append(found, e.Files)
	}
	if e.Env != nil {
		found = append(found, e.Env)
	}
	if e.HTTP != nil {
		found = append(found, e.HTTP)
	}
	if e.Exec != nil {
		found = append(found, e.Exec)
	}
	if e.GPUMemory != nil {
		found = append(found, e.GPUMemory)
	}
	if e.Disk != nil {
		found = append(found, e.Disk)
	}
	return found
}

// check makes a check of an entry.
func (e entry) check(deps Deps) (checks.Check, error) {
	id := idOf(e.Name)
	found := e.kinds()
	switch {
	case strings.TrimSpace(e.Name) == "":
		return checks.Check{}, fmt.Errorf("a check without a name")
	case id == "" || strings.ContainsFunc(e.Name, unicode.IsControl):
		return checks.Check{}, fmt.Errorf("name %q: want a name with letters or digits, on one line", e.Name)
	case len(found) != 1:
		return checks.Check{}, fmt.Errorf("check %q: want exactly one of %s", e.Name, kindNames)
	}
	what := found[0]
	c := checks.Check{
		ID: id, Name: e.Name, Title: e.Name, Phase: checks.Start, Limit: time.Duration(e.Timeout), Lane: laneOf(what),
		Run: func(ctx context.Context) checks.Result { return e.Severity.soften(what.run(ctx, deps)) },
	}
	if e.Phase != 0 {
		c.Phase = checks.Phase(e.Phase)
	}
	return c, nil
}

const kindNames = "files, env, http, exec, gpu_memory_gb and disk"

// laneOf keeps what acts on the box in the user's order; what only looks may be looked at beside it.
func laneOf(k kind) string {
	switch k.(type) {
	case command, *httpCall:
		return checks.LaneYours
	}
	return ""
}

// idOf makes an id of a name: "Model files" is model_files.
func idOf(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Join(words, "_")
}

// allOf says that as many things as were asked for are as they should be.
func allOf(n int, how string) string {
	if n == 1 {
		return "it is " + how
	}
	return fmt.Sprintf("all %d are %s", n, how)
}

// failed is the result of a check that found problems; it passed where there are none.
func failed(problems []string, remedy, passed string) checks.Result {
	if len(problems) == 0 {
		return checks.Result{Summary: passed}
	}
	return checks.Result{Status: checks.Fail, Summary: strings.Join(problems, "; "), Remedy: remedy}
}
