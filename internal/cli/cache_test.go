package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/volume"
	"runpodctl-worker/internal/worker/apidouble"
)

// tree is a volume and a directory that is cached.
type tree struct {
	*testing.T
	volume, dir, mirror string
}

func newTree(t *testing.T) tree {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	tr := tree{t, filepath.Join(root, "volume"), filepath.Join(root, "dir"), filepath.Join(root, "volume/.cache/ns")}
	require.NoError(t, os.Mkdir(tr.volume, 0o700))
	require.NoError(t, os.Mkdir(tr.dir, 0o700))
	return tr
}

func (tr tree) write(name, text string) {
	tr.Helper()
	path := filepath.Join(tr.dir, name)
	require.NoError(tr, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(tr, os.WriteFile(path, []byte(text), 0o600))
}

// empty is what a cold start finds.
func (tr tree) empty() {
	tr.Helper()
	require.NoError(tr, os.RemoveAll(tr.dir))
}

// cache runs an action.
func (tr tree) cache(args ...string) *ran {
	tr.Helper()
	r := &ran{invocation: invocation{env: map[string]string{"RUNPODCTL_WORKER_CACHE_VOLUME": tr.volume, "RUNPOD_ENDPOINT_ID": "ns"}}}
	r.code = r.run(append([]string{"cache"}, args...)...)
	return r
}

// ran is an invocation that has ended.
type ran struct {
	invocation
	code int
}

// says is stdout, without what differs from run to run.
func (tr tree) says(r *ran) string {
	tr.Helper()
	text := strings.NewReplacer(tr.mirror, "MIRROR", tr.dir, "DIR").Replace(r.stdout.String())
	return timings.ReplaceAllString(text, "*")
}

var timings = regexp.MustCompile(`\b\d+(\.\d+)?m?s\b|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|"seconds":[0-9.e-]+`)

func TestCache(t *testing.T) {
	tr := newTree(t)
	tr.write("small", "hello")
	tr.write("hub/blobs/abc", strings.Repeat("x", 300<<10))
	tr.write("interrupted.incomplete", "he")
	require.NoError(t, os.Symlink("blobs/abc", filepath.Join(tr.dir, "hub/model")))
	steps := []struct {
		name   string
		before func()
		args   []string
		code   int
		out    string
		warns  string
	}{
		{name: "nothing there yet", args: []string{"status", tr.dir}, out: "mirror      MIRROR\nwritten     never\nto hydrate  0 file(s), 0 B\nto sync     2 file(s), 300.0 KiB\n"},
		{name: "nothing to hydrate yet", args: []string{"hydrate", tr.dir}, out: "hydrated 0 file(s) from MIRROR: 0 B in *, 0 unchanged\n"},
		{name: "nothing to verify yet", args: []string{"verify"}, code: 1},
		{name: "a directory that is misspelt", args: []string{"sync", tr.dir + "s"}, out: "synced 0 file(s) to MIRROR: 0 B in *, 0 unchanged\n", warns: "none of the directories is there"},
		{name: "sync", args: []string{"sync", tr.dir}, out: "synced 2 file(s) to MIRROR: 300.0 KiB in *, 0 unchanged, 1 link(s)\n"},
		{name: "sync again", args: []string{"sync", tr.dir}, out: "synced 0 file(s) to MIRROR: 0 B in *, 2 unchanged\n"},
		{name: "status", args: []string{"status", tr.dir}, out: "mirror      MIRROR\nwritten     * UTC\nsmall       1 file(s), 5 B\nbig         1 file(s), 300.0 KiB\nlinks       1\nto hydrate  0 file(s), 0 B\nto sync     0 file(s), 0 B\n"},
		{name: "status without a directory", args: []string{"status"}, out: "mirror      MIRROR\nwritten     * UTC\nsmall       1 file(s), 5 B\nbig         1 file(s), 300.0 KiB\nlinks       1\n"},
		{name: "verify", args: []string{"verify"}, out: "MIRROR: 2 file(s), 300.0 KiB read in *, 0 problem(s)\n"},
		{name: "hydrate", before: tr.empty, args: []string{"hydrate", tr.dir}, out: "hydrated 2 file(s) from MIRROR: 300.0 KiB in *, 0 unchanged, 1 link(s)\n"},
		{name: "hydrate again, for a program", args: []string{"hydrate", tr.dir, "--json"}, out: `{"schema":1,"action":"hydrate","mirror":"MIRROR","available":true,"report":{"files":0,"bytes":0,"links":0,"unchanged":2,"skipped_total":0,*}}` + "\n"},
		{name: "nothing to prune", args: []string{"prune"}, out: "removed 0 file(s), 0 B, from MIRROR\n"},
		{name: "rot", before: func() {
			require.NoError(t, os.WriteFile(filepath.Join(tr.mirror, "big", tr.dir, "hub/blobs/abc"), []byte(strings.Repeat("y", 300<<10)), 0o600))
		}, args: []string{"verify"}, code: 1, out: "DIR/hub/blobs/abc: it has other bytes in the mirror than the manifest says\nMIRROR: 1 file(s), 5 B read in *, 1 problem(s)\n"},
		{name: "rot, for a program", args: []string{"verify", "--json"}, code: 1, out: `{"schema":1,"action":"verify","mirror":"MIRROR","available":true,"report":{"files":1,"bytes":5,"unhashed":0,"problems":[{"path":"DIR/hub/blobs/abc","what":"it has other bytes in the mirror than the manifest says"}],"problems_total":1,*}}` + "\n"},
		{name: "rot is taken out", args: []string{"verify", "--repair"}, code: 1, out: "DIR/hub/blobs/abc: it has other bytes in the mirror than the manifest says\nremoved bigDIR/hub/blobs/abc; the next sync brings it again\nMIRROR: 1 file(s), 5 B read in *, 1 problem(s)\n"},
		{name: "and comes back", args: []string{"sync", tr.dir}, out: "synced 1 file(s) to MIRROR: 300.0 KiB in *, 1 unchanged, 1 link(s)\n"},
		{name: "sound again", args: []string{"verify"}, out: "MIRROR: 2 file(s), 300.0 KiB read in *, 0 problem(s)\n"},
		{name: "repair what is no mirror's business", args: []string{"sync", tr.dir, "--repair"}, code: 2},
	}
	for _, step := range steps { // each goes on where the one before has ended
		ok := t.Run(step.name, func(t *testing.T) {
			if step.before != nil {
				step.before()
			}
			i := tr.cache(step.args...)
			require.Equal(t, step.code, i.code, i.stderr.String())
			require.Equal(t, step.out, tr.says(i))
			require.Contains(t, i.stderr.String(), step.warns)
		})
		require.True(t, ok)
	}
	text, err := os.ReadFile(filepath.Join(tr.dir, "hub/model"))
	require.NoError(t, err)
	require.Len(t, text, 300<<10, "the link leads to what it led to")
	require.NoFileExists(t, filepath.Join(tr.dir, "interrupted.incomplete"))
}

// What belongs to nothing is shown by a dry run, and removed without one.
func TestCache_Prune(t *testing.T) {
	tr := newTree(t)
	tr.write("model", strings.Repeat("x", 300<<10))
	require.Zero(t, tr.cache("sync", tr.dir).code)
	orphan := filepath.Join(tr.mirror, "big/gone/model")
	require.NoError(t, os.MkdirAll(filepath.Dir(orphan), 0o700))
	require.NoError(t, os.WriteFile(orphan, []byte("12345"), 0o600))

	fresh := tr.cache("prune")
	require.Equal(t, "removed 0 file(s), 0 B, from MIRROR\n", tr.says(fresh), "it may belong to a sync that is not at its end")
	require.FileExists(t, orphan)
}

func TestCache_WithoutAVolume(t *testing.T) {
	tr := newTree(t)
	require.NoError(t, os.Remove(tr.volume))
	for _, action := range []string{"hydrate", "sync", "status", "verify", "prune"} {
		words := []string{action, tr.dir}
		if action == "verify" || action == "prune" {
			words = words[:1] // these are for the whole mirror
		}
		i := tr.cache(words...)
		require.Zero(t, i.code)
		require.Equal(t, tr.volume+": there is no network volume\n", i.stdout.String())
		require.Empty(t, i.stderr.String())

		i = tr.cache(append(words, "--json")...)
		require.Zero(t, i.code)
		require.Equal(t, `{"schema":1,"action":"`+action+`","mirror":"MIRROR","available":false}`+"\n", tr.says(i))
	}
}

func TestCache_Failures(t *testing.T) {
	tr := newTree(t)
	tr.write("model", "x")
	require.NoError(t, os.WriteFile(filepath.Join(tr.volume, ".cache"), nil, 0o600)) // where a folder belongs
	i := tr.cache("sync", tr.dir)
	require.Equal(t, 1, i.code)
	require.Empty(t, i.stdout.String())
	require.Contains(t, i.stderr.String(), "runpodctl-worker: sync: ")

	for _, tt := range []struct {
		args []string
		exit int
		code string
	}{
		{[]string{"sync", tr.dir, "--json"}, 1, "failed"},
		{[]string{"sync", tr.dir, "--json", "--timeout", "1ns"}, 1, "failed"},
		{[]string{"sync", "--json"}, 2, "usage"},
		{[]string{"sync", "--json=true"}, 2, "usage"},
		{[]string{"sync", "/", "--json"}, 2, "usage"},
		{[]string{"verify", tr.dir, "--json"}, 2, "usage"},
		{[]string{"prune", "--json", "--", tr.dir}, 2, "usage"},
	} {
		i := tr.cache(tt.args...)
		require.Equal(t, tt.exit, i.code, tt.args)
		require.Empty(t, i.stdout.String())
		lines := strings.Split(strings.TrimSpace(i.stderr.String()), "\n")
		var said struct{ Code, Error string }
		require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &said), i.stderr.String())
		require.Equal(t, tt.code, said.Code)
		require.NotEmpty(t, said.Error)
	}
}

// What is found at each look is said once.
func TestCache_WarnsOnce(t *testing.T) {
	tr := newTree(t)
	tr.write("model", "x")
	odd := filepath.Join(filepath.Dir(tr.dir), "odd")
	require.NoError(t, os.WriteFile(odd, nil, 0o600))
	require.NoError(t, os.MkdirAll(tr.mirror, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(tr.mirror, "manifest.json"), nil, 0o600))
	i := tr.cache("sync", tr.dir, odd)
	require.Zero(t, i.code, i.stderr.String())
	require.Equal(t, 1, strings.Count(i.stderr.String(), odd+" is no directory and is not cached"), i.stderr.String())
	require.Equal(t, 1, strings.Count(i.stderr.String(), "counts as empty"), i.stderr.String())
}

// A name is shown, never obeyed by the terminal.
func TestCache_NamesForATerminal(t *testing.T) {
	tr := newTree(t)
	name := "\x1b[31mred"
	tr.write(name, "x")
	require.Zero(t, tr.cache("sync", tr.dir).code)
	tr.empty()
	require.NoError(t, os.MkdirAll(filepath.Join(tr.dir, name), 0o700))
	i := tr.cache("hydrate", tr.dir)
	require.Zero(t, i.code)
	require.Contains(t, tr.says(i), `left out "DIR/\x1b[31mred": DIR/\x1b[31mred is a folder, where a file belongs: remove it`)

	tr.volume = filepath.Join(tr.volume, name)
	require.NoError(t, os.Mkdir(tr.volume, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(tr.volume, ".cache"), nil, 0o600)) // where a folder belongs
	i = tr.cache("sync", tr.dir)
	require.Equal(t, 1, i.code)
	require.Contains(t, i.stderr.String(), `\x1b[31mred/.cache is a file, where a folder belongs`)
}

// Ctrl-C ends what waits, here for another worker.
func TestCache_Interrupted(t *testing.T) {
	tr := newTree(t)
	tr.write("model", "x")
	require.NoError(t, os.MkdirAll(tr.mirror, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(tr.mirror, "sync.lock"), []byte(`{"host":"other","pid":7,"boot":"b","pid_namespace":"p","id":"i"}`), 0o600))
	status := tr.cache("status", tr.dir)
	require.Contains(t, status.stdout.String(), "\nwriter      process 7 on other, seen ")

	i := &invocation{signals: make(chan os.Signal, 1)}
	i.signals <- syscall.SIGINT
	require.Equal(t, 130, i.run("cache", "sync", "--volume", tr.volume, "--namespace", "ns", tr.dir))
	require.Contains(t, i.stderr.String(), "runpodctl-worker: interrupted\n")
	require.NoFileExists(t, filepath.Join(tr.mirror, "manifest.json"))
}

func TestPrunedLines(t *testing.T) {
	p := volume.Pruned{Files: []string{"big/a", "big/\x1b[31mb"}, Bytes: 2048}
	require.Equal(t, []string{"removed big/a", `removed "big/\x1b[31mb"`, "removed 2 file(s), 2.0 KiB, from M"}, prunedLines(p, "M", false))
	require.Equal(t, []string{"would remove 0 file(s), 0 B, from M"}, prunedLines(volume.Pruned{}, "M", true))
}

func TestSkips(t *testing.T) {
	list := []volume.Skip{{Path: "/d/a", Reason: "it changes"}}
	require.Equal(t, []string{"left out /d/a: it changes"}, skips(list, 1))
	require.Equal(t, []string{"left out /d/a: it changes", "and 4 more"}, skips(list, 5))
	require.Equal(t, "hydrated 1 file(s) from M: 1 B in 2.5s, 3 unchanged, 2 link(s), 5 left out",
		hydrated(volume.Report{Files: 1, Bytes: 1, Seconds: 2.5, Unchanged: 3, Links: 2, SkippedTotal: 5}, "M"))
}

// A flag beats a variable, which beats the file; the directories of all are filled before the worker is ready, and mirrored
// when it ends.
func TestRun_KeepsDirectoriesWarm(t *testing.T) {
	for name, tt := range map[string]struct {
		flags func(tree) []string
		env   func(tree) map[string]string
		file  func(tree) string
	}{
		"by flags": {flags: func(tr tree) []string {
			return []string{"--cache-dir", tr.dir, "--cache-dir", tr.dir + "2", "--cache-volume", tr.volume, "--cache-namespace", "ns"}
		}, env: func(tree) map[string]string {
			return map[string]string{"RUNPODCTL_WORKER_CACHE_DIR": "/not/this", "RUNPODCTL_WORKER_CACHE_VOLUME": "/nor/this", "RUNPODCTL_WORKER_CACHE_NAMESPACE": "nor-this"}
		}},
		"by variables": {env: func(tr tree) map[string]string {
			return map[string]string{"RUNPODCTL_WORKER_CACHE_DIR": tr.dir + ":" + tr.dir + "2", "RUNPODCTL_WORKER_CACHE_VOLUME": tr.volume, "RUNPOD_ENDPOINT_ID": "ns"}
		}, file: func(tree) string { return "cache-dir: /not/this\ncache-volume: /nor/this\n" }},
		"by a file": {file: func(tr tree) string {
			return "cache-dir: [" + tr.dir + ", " + tr.dir + "2]\ncache_volume: " + tr.volume + "\ncache-namespace: ns\n"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTree(t)
			tr.write("model", "weights")
			require.NoError(t, os.Mkdir(tr.dir+"2", 0o700))
			require.NoError(t, os.WriteFile(tr.dir+"2/other", []byte("more weights"), 0o600))
			require.Zero(t, tr.cache("sync", tr.dir, tr.dir+"2").code)
			tr.empty()
			require.NoError(t, os.RemoveAll(tr.dir+"2"))

			args, env := []string{"--handler", "echo", "--metrics-addr", ":0", "--log-format", "text"}, map[string]string(nil)
			if tt.flags != nil {
				args = append(args, tt.flags(tr)...)
			}
			if tt.env != nil {
				env = tt.env(tr)
			}
			if tt.file != nil {
				path := filepath.Join(t.TempDir(), "run.yaml")
				require.NoError(t, os.WriteFile(path, []byte(tt.file(tr)), 0o600))
				args = append(args, "--config", path)
			}
			h := onPlatform(t, env, nil, args...)
			addr := h.addr()
			h.soon(addr+"/readyz", http.StatusOK)
			require.Contains(t, h.stderr.String(), "INFO   | VolumeCache: hydrated 2 file(s) from "+tr.mirror+": 19 B in ")
			require.FileExists(t, filepath.Join(tr.dir, "model"))
			require.FileExists(t, tr.dir+"2/other")
			var status struct {
				Cache map[string]struct{ Files, Bytes int }
			}
			require.NoError(t, json.Unmarshal([]byte(h.soon(addr+"/status.json", http.StatusOK)), &status))
			require.Equal(t, 2, status.Cache["hydrate"].Files)
			require.Equal(t, 19, status.Cache["hydrate"].Bytes)

			tr.write("new", "made by a job")
			require.Zero(t, h.end())
			require.Contains(t, h.stderr.String(), "INFO   | VolumeCache: synced ")
			require.Contains(t, tr.cache("status", tr.dir, tr.dir+"2").stdout.String(), "small       3 file(s), 32 B\n")
		})
	}
}

func TestRun_WithoutACache(t *testing.T) {
	tr := newTree(t)
	for name, tt := range map[string]struct {
		args []string
		env  map[string]string
		says string
	}{
		"no volume": {[]string{"--cache-volume", tr.volume + "2"}, nil, "INFO   | VolumeCache: nothing is cached: " + tr.volume + "2: there is no network volume\n"},
		"no name":   {[]string{"--cache-volume", tr.volume}, map[string]string{"RUNPOD_ENDPOINT_ID": ""}, "INFO   | VolumeCache: nothing is cached, since the mirror has no name: give --cache-namespace or set RUNPOD_ENDPOINT_ID\n"},
	} {
		t.Run(name, func(t *testing.T) {
			h := onPlatform(t, tt.env, nil, append(tt.args, "--handler", "echo", "--log-format", "text", "--cache-dir", tr.dir)...)
			require.Eventually(t, func() bool { return len(h.api.Calls(apidouble.Take)) > 0 }, patience, 10*time.Millisecond)
			require.Zero(t, h.end())
			require.Equal(t, 1, strings.Count(h.stderr.String(), "VolumeCache"), "one line")
			require.Contains(t, h.stderr.String(), tt.says)
		})
	}
}
