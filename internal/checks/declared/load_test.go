package declared

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
)

func TestLoad(t *testing.T) {
	list, err := Load(t.Context(), write(t, `
checks:
  - name: Model files
    phase: early
    files: [/models/config.json]
  - name: API key
    severity: warn
    env:
      - API_KEY
  - name: server
    timeout: 1.5s
    http: http://localhost:8000/health
  - {name: "tool, v2", exec: "true"}
  - {name: gpu, gpu_memory_gb: 23}
  - {name: scratch, disk: {path: /tmp, min_free_gb: 1}}
`), withEnv())
	require.NoError(t, err)
	type row struct {
		id, name, lane string
		phase          checks.Phase
		limit          time.Duration
	}
	var rows []row
	for _, c := range list {
		require.False(t, c.Builtin)
		require.False(t, c.Vital)
		rows = append(rows, row{c.ID, c.Name, c.Lane, c.Phase, c.Limit})
	}
	require.Equal(t, []row{
		{"model_files", "Model files", "", checks.Early, 0},
		{"api_key", "API key", "", checks.Start, 0},
		{"server", "server", checks.LaneYours, checks.Start, 1500 * time.Millisecond},
		{"tool_v2", "tool, v2", checks.LaneYours, checks.Start, 0},
		{"gpu", "gpu", "", checks.Start, 0},
		{"scratch", "scratch", "", checks.Start, 0},
	}, rows)
}

func TestLoad_Errors(t *testing.T) {
	const name = "checks:\n  - name: it\n    "
	for _, tt := range []struct{ name, text, err string }{
		{"empty", "", `: no checks in it; want a list under "checks:"`},
		{"an empty list", "checks: []", `: no checks in it; want a list under "checks:"`},
		{"no value", "checks:", ":1: checks: there is no value"},
		{"a list alone", "- name: it", ":1: want names and values"},
		{"text alone", "hello", ":1: want names and values"},
		{"two documents", "checks: []\n---\nchecks: []", ": want one YAML document"},
		{"no YAML", "checks:\n\t- x", ":2: found character that cannot start any token"},
		{"an unknown key", "check:\n", `:1: unknown key "check"; known are checks`},
		{"an unknown key of a check", name + "file: [/x]", `:3: unknown key "file"; known are name, phase, `},
		{"a check that is text", "checks:\n  - it", ":2: want names and values"},
		{"checks that are text", "checks: it", `:1: want a list, not "it"`},
		{"no name", "checks:\n  - env: [A]", ":2: a check without a name"},
		{"a blank name", "checks:\n  - {name: ' ', env: [A]}", ":2: a check without a name"},
		{"a name of two lines", "checks:\n  - {name: \"a\\nb\", env: [A]}", `:2: name "a\nb": want a name`},
		{"a name without letters", "checks:\n  - {name: '--', env: [A]}", `:2: name "--": want a name`},
		{"a name that is a list", "checks:\n  - {name: [a], env: [A]}", ":2: want text"},
		{"a builtin id", "checks:\n  - {name: Memory, env: [A]}", `:2: name "Memory": the id memory is taken`},
		{"the same name twice", "checks:\n  - {name: it, env: [A]}\n  - {name: It!, env: [B]}", `:3: name "It!": the id it is taken`},
		{"no kind", "checks:\n  - name: it", `:2: check "it": want exactly one of files, env, http, exec, gpu_memory_gb and disk`},
		{"two kinds", name + "env: [A]\n    exec: ls", `:2: check "it": want exactly one of`},
		{"the same key twice", name + "env: [A]\n    env: [B]", `:4: mapping key "env" already defined at line 3`},
		{"an unknown phase", name + "phase: late\n    env: [A]", `:3: phase: want early or start, not "late"`},
		{"a bad time", name + "timeout: 5\n    env: [A]", `:3: "5" is not a time such as 1.5s`},
		{"no time at all", name + "timeout: 0s\n    env: [A]", `:3: "0s" is not a time`},
		{"an unknown severity", name + "severity: info\n    env: [A]", `:3: severity: want fail or warn, not "info"`},
		{"no files", name + "files: []", ":3: want a list with something in it"},
		{"a file for a list", name + "files: /x", ":3: want a list with something in it"},
		{"a file without a path", name + "files:\n      - min_size_mb: 1", ":4: files: an entry without a path"},
		{"a negative size", name + "files:\n      - {path: /x, min_size_mb: -1}", ":4: min_size_mb: want 0 or more, not -1"},
		{"a size that is no number", name + "files:\n      - {path: /x, min_size_mb: .nan}", ":4: min_size_mb: want 0 or more, not NaN"},
		{"a size in words", name + "files:\n      - {path: /x, min_size_mb: big}", `:4: want a number, not "big"`},
		{"an unknown key of a file", name + "files:\n      - {path: /x, size: 1}", `:4: unknown key "size"; known are path, min_size_mb, writable`},
		{"neither true nor false", name + "files:\n      - {path: /x, writable: maybe}", `:4: want true or false, not "maybe"`},
		{"a variable without a name", name + "env:\n      - matches: x", ":4: env: an entry without a name"},
		{"a pattern that makes no sense", name + "env:\n      - {name: A, matches: '['}", ":4: matches: error parsing regexp"},
		{"a pattern that is a list to YAML", name + "env:\n      - name: A\n        matches: [0-9]", ":5: matches: want a regular expression as one text"},
		{"a URL without a host", name + "http: localhost:8000", ":3: url: want a URL such as"},
		{"http without a URL", name + "http:\n      status: [200]", ":4: http: want a url"},
		{"a status in words", name + "http: {url: http://x, status: [good]}", `:3: want a whole number, not "good"`},
		{"no such status", name + "http: {url: http://x, status: [2000]}", ":3: status: 2000 is none of HTTP's"},
		{"an empty command", name + "exec: ' '", ":3: exec: there is no command"},
		{"an empty list for a command", name + "exec: []", ":3: want a list with something in it"},
		{"a command without a word", name + "exec: ['']", ":3: exec: there is no command"},
		{"GPU memory in words", name + "gpu_memory_gb: much", `:3: want a number, not "much"`},
		{"no GPU memory", name + "gpu_memory_gb: 0", ":3: gpu_memory_gb: want more than 0, not 0"},
		{"GPU memory that is no number", name + "gpu_memory_gb: .nan", ":3: gpu_memory_gb: want more than 0, not .nan"},
		{"a disk without a path", name + "disk: {min_free_gb: 1}", ":3: disk: want a path"},
		{"a disk without a threshold", name + "disk: {path: /}", ":3: disk: want min_free_gb above 0"},
		{"over 100 percent", name + "disk: {path: /, min_free_percent: 101}", ":3: disk: want min_free_gb above 0"},
		{"a disk that is text", name + "disk: /", ":3: want names and values"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, tt.text)
			_, err := Load(t.Context(), path, Deps{Taken: []string{"memory", "disk"}})
			require.Error(t, err)
			require.True(t, strings.HasPrefix(err.Error(), path+tt.err), err)
			require.NotContains(t, err.Error(), "\n")
		})
	}
	t.Run("no such file", func(t *testing.T) {
		_, err := Load(t.Context(), filepath.Join(t.TempDir(), "gone.yaml"), Deps{})
		require.ErrorIs(t, err, os.ErrNotExist)
	})
}

func TestLoad_Anchors(t *testing.T) {
	list, err := Load(t.Context(), write(t, "checks:\n  - {name: a, files: &f [&p /etc, *p]}\n  - {name: b, files: *f}\n"), Deps{})
	require.NoError(t, err)
	require.Len(t, list, 2)
	for _, c := range list {
		require.Equal(t, "all 2 are there", c.Run(t.Context()).Summary)
	}
}

func TestLoad_SeverityWarn(t *testing.T) {
	require.Equal(t, checks.Warn, runOne(t, "    severity: warn\n    env: [A]\n", withEnv()).Status)
	require.Equal(t, checks.Pass, runOne(t, "    severity: warn\n    env: [A]\n", withEnv("A=1")).Status)
	require.Equal(t, checks.Fail, runOne(t, "    severity: fail\n    env: [A]\n", withEnv()).Status)
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"checks:\n  - {name: a, files: [/x, {path: /y, min_size_mb: 1, writable: true}]}\n",
		"checks:\n  - {name: a, env: [A, {name: B, matches: ^x}], severity: warn, phase: early, timeout: 3s}\n",
		"checks:\n  - name: a\n    http: {url: http://x, status: [200], headers: {A: '${B}'}}\n",
		"checks:\n  - {name: a, exec: [a, b]}\n  - {name: b, exec: a}\n  - {name: c, gpu_memory_gb: 1e3}\n",
		"checks: &a\n  - *a\n",
		"checks:\n  - {name: a, disk: {path: /, min_free_percent: 1}}\n  - <<: {name: b}\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parse([]byte(text), Deps{})
		if err != nil {
			require.Regexp(t, `^(:\d+)?: .`, err.Error())
			require.NotContains(t, err.Error(), "\n")
			return
		}
		var suite checks.Suite
		require.NoError(t, suite.Add(list...), "what is loaded can be run")
	})
}
