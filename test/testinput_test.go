package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const itemsJob = `{"input":{"items":["a","b","c"]}}`

// testInput runs serve --test_input on a handler file.
func testInput(t *testing.T, file, input string, args ...string) *process {
	t.Helper()
	args = append([]string{"--python", python(t), "--handler", handler(t, file), "--test_input", input}, args...)
	return runToEnd(t, command{args: append([]string{binary(t), "serve"}, args...), dir: t.TempDir()})
}

// document is what --test_input prints: the job, with the items of a generator as they were yielded.
type document struct {
	job
	Items []string `json:"stream"`
}

// document is the one JSON document that stdout must be.
func (p *process) document(t *testing.T) document {
	t.Helper()
	require.True(t, json.Valid([]byte(p.stdout.String())), "stdout is not one JSON document: %q\n%s", p.stdout, p.stderr)
	return decode[document](t, p.stdout.String())
}

func TestTestInputOfEachKind(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.file, func(t *testing.T) {
			t.Parallel()
			p := testInput(t, kind.file, itemsJob)
			require.Zero(t, p.wait(t), p.stderr)
			j := p.document(t)
			require.NotEmpty(t, j.ID)
			require.Equal(t, "COMPLETED", j.Status)
			require.NotNil(t, j.DelayTime)
			require.NotNil(t, j.ExecutionTime)
			requireOutput(t, kind.streams, j.Output)
			if kind.streams {
				require.Equal(t, []string{"a", "b", "c"}, j.Items)
			}
		})
	}
}

// The sample handlers and the sample job of this repository are what the README tells people to try.
func TestSampleHandlers(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.file, func(t *testing.T) {
			t.Parallel()
			p := runToEnd(t, command{
				args: []string{
					binary(t), "serve", "--python", python(t),
					"--test_input", "testdata/job.json", "--handler", filepath.Join("testdata", "handlers", kind.file),
				},
				dir: "..",
			})
			require.Zero(t, p.wait(t), p.stderr)
			j := decode[struct {
				Status string
				Stream []json.RawMessage
			}](t, p.stdout.String())
			require.Equal(t, "COMPLETED", j.Status)
			require.Equal(t, kind.streams, len(j.Stream) > 0)
		})
	}
}

func TestTestInputSources(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "job.json")
	require.NoError(t, os.WriteFile(path, []byte(itemsJob), 0o600))
	for name, row := range map[string]struct{ value, stdin string }{
		"JSON text": {value: itemsJob},
		"path":      {value: path},
		"@file":     {value: "@" + path},
		"stdin":     {value: "-", stdin: itemsJob},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := runToEnd(t, command{
				args: []string{
					binary(t), "serve", "--python", python(t),
					"--handler", handler(t, "sync.py"), "--test_input", row.value,
				},
				stdin: row.stdin,
			})
			require.Zero(t, p.wait(t), p.stderr)
			require.JSONEq(t, `{"items":["a","b","c"]}`, string(p.document(t).Output))
		})
	}
}

func TestTestOutput(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		want string
		code int
	}{
		"same":                {`{"items":["a","b","c"]}`, 0},
		"same in other words": {`{ "items" : [ "a","b", "c" ] }`, 0},
		"other":               {`{"items":["a","x","c"]}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := testInput(t, "sync.py", itemsJob, "--test_output", row.want)
			require.Equal(t, row.code, p.wait(t), p.stderr)
			require.Equal(t, "COMPLETED", p.document(t).Status)
			if row.code != 0 {
				require.Contains(t, p.stderr.String(), `"x"`, "no diff")
			}
		})
	}
}

func TestTestInputFails(t *testing.T) {
	t.Parallel()
	t.Run("the handler raises", func(t *testing.T) {
		t.Parallel()
		p := testInput(t, "sync.py", `{"input":{}}`)
		require.Equal(t, 1, p.wait(t))
		j := p.document(t)
		require.Equal(t, "FAILED", j.Status)
		cause := decode[map[string]string](t, []byte(j.Error))
		for _, key := range []string{
			"error_type", "error_message", "error_traceback", "hostname", "worker_id", "runpod_version",
		} {
			require.Contains(t, cause, key)
		}
		require.Contains(t, cause["error_type"], "KeyError")
	})
	t.Run("the handler file cannot be loaded", func(t *testing.T) {
		t.Parallel()
		p := testInput(t, "broken.py", itemsJob)
		require.Equal(t, 1, p.wait(t))
		require.Contains(t, p.stderr.String(), "no_such_package_anywhere")
		require.Contains(t, p.stderr.String(), "Traceback")
	})
}

func TestTestInputInterrupted(t *testing.T) {
	t.Parallel()
	g := newGates(t)
	p := start(t, command{
		args: []string{
			binary(t), "serve", "--python", python(t),
			"--handler", handler(t, "gate.py"), "--test_input", `{"input":` + g.input("never") + `}`,
		},
	})
	g.awaitStarted(1)
	p.signal(t, syscall.SIGINT)
	require.Equal(t, 130, p.wait(t), p.stderr)
}
