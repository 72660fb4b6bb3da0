package program_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/handler/program"
)

// copier stands in for the worker's program: it notes its arguments and answers as it is told.
const copier = `#!/bin/sh
echo "$@" >> "$(dirname "$0")/calls"
cat "$(dirname "$0")/stderr" >&2
cat "$(dirname "$0")/stdout"
exit "$(cat "$(dirname "$0")/code")"
`

const copied = `{"schema":1,"action":"x","mirror":"m","available":true,"report":{"files":3}}`

func writeCopier(t *testing.T, stdout, stderr, code string) (path string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"copier": copier, "stdout": stdout, "stderr": stderr, "code": code} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	return filepath.Join(dir, "copier")
}

// runVolumeCache runs a script that has a volume, and an empty directory "d" beside it, in a process of its own.
func runVolumeCache(t *testing.T, python, binary, script string) (volume, out string) {
	t.Helper()
	root := t.TempDir()
	volume = filepath.Join(root, "v")
	require.NoError(t, os.MkdirAll(volume, 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "d"), 0o700))
	t.Setenv("RUNPOD_ENDPOINT_ID", "")
	t.Setenv("RUNPODCTL_WORKER_BINARY", binary)
	out = runPython(t, python, shimDir(t), "import os\nfrom runpod.serverless import VolumeCache\nos.chdir("+string(quote(t, root))+")\nv = "+string(quote(t, volume))+"\n"+script)
	return volume, strings.ReplaceAll(out, root, "ROOT")
}

func TestVolumeCache_RunsTheWorkersProgram(t *testing.T) {
	const warning = "WARN   | VolumeCache: the volume is a folder\n"
	tests := []struct {
		name                 string
		stdout, stderr, code string
		script               string
		calls                []string
		out                  string
	}{
		{
			name: "hydrate", stdout: copied, code: "0",
			script: `print(VolumeCache("d", namespace="n", volume_path=v).hydrate())`,
			calls:  []string{"cache hydrate --json --log-level=WARN --volume=ROOT/v --namespace=n -- ROOT/d"},
			out:    "INFO   | VolumeCache: hydrated 3 file(s) from ROOT/v/.cache/n\n3\n",
		},
		{
			name: "some of them small", stdout: `{"report":{"files":3,"small":2}}`, code: "0",
			script: `VolumeCache("d", namespace="n", volume_path=v).hydrate()`,
			calls:  []string{"cache hydrate --json --log-level=WARN --volume=ROOT/v --namespace=n -- ROOT/d"},
			out:    "INFO   | VolumeCache: extracted 2 small file(s)\nINFO   | VolumeCache: hydrated 3 file(s) from ROOT/v/.cache/n\n",
		},
		{
			name: "sync", stdout: copied, code: "0",
			script: `print(VolumeCache([b"d", "e"], namespace="n", volume_path=os.fsencode(v), max_workers=7).sync(background=False))`,
			calls:  []string{"cache sync --json --log-level=WARN --volume=ROOT/v --namespace=n --copiers=7 -- ROOT/d ROOT/e"},
			out:    "INFO   | VolumeCache: synced 3 file(s) to ROOT/v/.cache/n\nNone\n",
		},
		{
			name: "a context", stdout: copied, code: "0",
			script: `with VolumeCache(["d"], namespace="n", volume_path=v) as cache: print(type(cache).__name__)`,
			calls: []string{
				"cache hydrate --json --log-level=WARN --volume=ROOT/v --namespace=n -- ROOT/d",
				"cache sync --json --log-level=WARN --volume=ROOT/v --namespace=n -- ROOT/d",
			},
			out: "INFO   | VolumeCache: hydrated 3 file(s) from ROOT/v/.cache/n\nVolumeCache\nINFO   | VolumeCache: synced 3 file(s) to ROOT/v/.cache/n\n",
		},
		{
			name: "nothing to copy", stdout: `{"schema":1,"available":false}`, code: "0",
			script: `print(VolumeCache("d", namespace="n", volume_path=v).hydrate())`,
			calls:  []string{"cache hydrate --json --log-level=WARN --volume=ROOT/v --namespace=n -- ROOT/d"},
			out:    "0\n",
		},
		{
			name: "a warning, once", stdout: `{"report":{"files":0}}`, stderr: warning, code: "0",
			script: "cache = VolumeCache('d', namespace='n', volume_path=v)\ncache.hydrate(); cache.hydrate()",
			calls: []string{
				"cache hydrate --json --log-level=WARN --volume=ROOT/v --namespace=n -- ROOT/d",
				"cache hydrate --json --log-level=WARN --volume=ROOT/v --namespace=n -- ROOT/d",
			},
			out: warning,
		},
		{
			name: "a failure", stderr: warning + `{"code":"failed","error":"no space left on device"}` + "\n", code: "1",
			script: `VolumeCache("d", namespace="n", volume_path=v).sync()`,
			calls:  []string{"cache sync --json --log-level=WARN --volume=ROOT/v --namespace=n -- ROOT/d"},
			out:    warning + "WARN   | VolumeCache operation failed: no space left on device\n",
		},
		{
			name: "a failure that is wanted", stderr: `{"code":"failed","error":"no space left on device"}` + "\n", code: "1",
			script: "try: VolumeCache('d', namespace='n', volume_path=v, best_effort=False).hydrate()\nexcept OSError as error: print(repr(error))",
			calls:  []string{"cache hydrate --json --log-level=WARN --volume=ROOT/v --namespace=n -- ROOT/d"},
			out:    "OSError('no space left on device')\n",
		},
		{
			name: "an end without a word", code: "137",
			script: `VolumeCache("d", namespace="n", volume_path=v).hydrate()`,
			calls:  []string{"cache hydrate --json --log-level=WARN --volume=ROOT/v --namespace=n -- ROOT/d"},
			out:    "WARN   | VolumeCache operation failed: ROOT/copier ended with code 137\n",
		},
		{
			name: "the endpoint's id is the name", stdout: copied, code: "0",
			script: "os.environ['RUNPOD_ENDPOINT_ID'] = 'ep'\nos.environ['RUNPODCTL_WORKER_LOG_FORMAT'] = 'text'\nVolumeCache('d', volume_path=v).hydrate()",
			calls:  []string{"cache hydrate --json --log-level=WARN --volume=ROOT/v --namespace=ep -- ROOT/d"},
			out:    "INFO   | VolumeCache: hydrated 3 file(s) from ROOT/v/.cache/ep\n",
		},
		{name: "no name", stdout: copied, code: "0", script: "cache = VolumeCache('d', volume_path=v)\nprint(cache.available, cache.hydrate(), cache.sync())", out: "False 0 None\n"},
		{name: "no directory", stdout: copied, code: "0", script: "cache = VolumeCache([], namespace='n', volume_path=v)\nprint(cache.available, cache.hydrate(), cache.sync(background=False))", out: "True 0 None\n"},
		{name: "no volume", stdout: copied, code: "0", script: "cache = VolumeCache('d', namespace='n', volume_path=v + '2')\nprint(cache.available, cache.hydrate(), cache.sync())", out: "False 0 None\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			binary := writeCopier(t, tt.stdout, tt.stderr, tt.code)
			volume, out := runVolumeCache(t, "python3", binary, tt.script)
			require.Equal(t, tt.out, strings.ReplaceAll(out, filepath.Dir(binary), "ROOT"))
			calls, err := os.ReadFile(filepath.Join(filepath.Dir(binary), "calls"))
			if len(tt.calls) == 0 {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, strings.Join(tt.calls, "\n")+"\n", strings.ReplaceAll(string(calls), filepath.Dir(volume), "ROOT"))
		})
	}
}

// Where the worker's program cannot be run the class of the installed package does the work, and without one nobody.
func TestVolumeCache_WithoutTheWorkersProgram(t *testing.T) {
	const script = `
open("d/f", "w").close()
cache = VolumeCache("d", namespace="n", volume_path=v)
cache.hydrate()
cache.sync(background=False)
strict = VolumeCache("d", namespace="n", volume_path=v, best_effort=False)
try: print(strict.hydrate())
except OSError as error: print(error)
`
	for name, binary := range map[string]string{"not set": "", "not there": "/gone/runpodctl-worker", "not a program": shimDir(t)} {
		why := map[string]string{
			"not set":       "RUNPODCTL_WORKER_BINARY is not set",
			"not there":     "[Errno 2] No such file or directory: '/gone/runpodctl-worker'",
			"not a program": "[Errno 13] Permission denied: '" + shimDir(t) + "'",
		}[name]
		t.Run(name, func(t *testing.T) {
			volume, out := runVolumeCache(t, "python3", binary, script)
			require.Equal(t, "WARN   | VolumeCache: nothing is cached, since the worker's program cannot be run: "+why+"\n"+
				"VolumeCache cannot run the worker's program: "+why+"\n", out)
			require.NoDirExists(t, filepath.Join(volume, ".cache"))
		})
		t.Run(name+", with the package", func(t *testing.T) {
			volume, out := runVolumeCache(t, installed(t), binary, script)
			require.Contains(t, out, "INFO   | VolumeCache: synced 1 file(s) to ROOT/v/.cache/n\n")
			require.NotContains(t, out, "WARN")
			require.True(t, strings.HasSuffix(out, "0\n"))
			require.FileExists(t, filepath.Join(volume, ".cache/n/manifest.json"))
		})
	}
}

// What is wrong with the arguments is said in the package's words, and so is where the mirror lies.
func TestVolumeCache_AgreesWithThePackage(t *testing.T) {
	python := installed(t)
	const script = `
import json, os, pathlib
from runpod.serverless import VolumeCache
out = []
for arguments in (
    dict(namespace="a/b"), dict(namespace="/a"), dict(namespace="a\\b"), dict(namespace=".."), dict(namespace="."),
    dict(max_workers=0), dict(max_workers=-1), dict(namespace=""), dict(namespace="n"), dict(volume_path=b"/v"),
    dict(dirs="/x"), dict(dirs=b"/x"), dict(dirs=pathlib.Path("/x/../y")), dict(dirs=["a", b"b"]), dict(dirs=3), dict(volume_path=3),
):
    for endpoint in ("", "ep", "e/p"):
        os.environ["RUNPOD_ENDPOINT_ID"] = endpoint
        try: cache = VolumeCache(**{"dirs": [], **arguments})
        except (ValueError, TypeError) as error: out.append(repr(error))
        else: out.append([cache._dirs, cache._namespace, cache._volume_path, cache._mirror_root, cache._best_effort, cache.available])
print(json.dumps(out))
`
	want := runPython(t, python, "", script)
	require.Greater(t, strings.Count(want, "ValueError"), 15)
	require.JSONEq(t, want, runPython(t, python, shimDir(t), script))
}

// A handler's syncs in the background are done when its program has been stopped.
func TestVolumeCache_IsDoneBeforeTheEnd(t *testing.T) {
	binary := writeCopier(t, copied, "", "0")
	volume := t.TempDir()
	c := start(t, program.Options{
		Args: program.Command(write(t, `
import runpod
def handler(job):
    with runpod.serverless.VolumeCache(job["input"], namespace="n", volume_path=job["input"]): return 1
runpod.serverless.start({"handler": handler})
`), ""),
		Env: append(os.Environ(), "RUNPODCTL_WORKER_BINARY="+binary, "RUNPODCTL_WORKER_LOG_FORMAT=text"),
	})
	input, err := json.Marshal(volume)
	require.NoError(t, err)
	out, _ := c.do(string(input))
	require.Equal(t, "1", string(out.Output))
	c.stop()
	require.Contains(t, c.out.String(), "INFO   | VolumeCache: synced 3 file(s) to "+volume+"/.cache/n\n")
}
