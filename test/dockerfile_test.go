package test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// image is what a Dockerfile makes, laid out in a folder that stands for its root.
type image struct {
	t       *testing.T
	root    string
	workdir string
	command []string // ENTRYPOINT and CMD
}

// buildImage does what the lines of a Dockerfile say, but for those that install packages. The context holds the files
// beside it, and those given.
func buildImage(t *testing.T, dockerfile string, context map[string]string) *image {
	t.Helper()
	raw, err := os.ReadFile(dockerfile)
	require.NoError(t, err)
	img := &image{t: t, root: t.TempDir(), workdir: "/"}
	var entrypoint, cmd []string
	for line := range strings.Lines(string(raw)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "", "#", "FROM", "RUN":
		case "WORKDIR":
			img.workdir = img.in(rest)
			require.NoError(t, os.MkdirAll(filepath.Join(img.root, img.workdir), 0o755))
		case "COPY":
			img.copy(filepath.Dir(dockerfile), context, strings.Fields(rest))
		case "ENTRYPOINT":
			entrypoint = decode[[]string](t, rest)
		case "CMD":
			cmd = decode[[]string](t, rest)
		default:
			require.Fail(t, "an instruction that this test does not know", line)
		}
	}
	img.command = append(entrypoint, cmd...)
	return img
}

// in is a path of the image as an absolute one.
func (img *image) in(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(img.workdir, path)
}

// copy does one COPY of one file.
func (img *image) copy(folder string, context map[string]string, words []string) {
	img.t.Helper()
	var mode fs.FileMode = 0o644
	if words[0] == "--chmod=0755" {
		mode, words = 0o755, words[1:]
	}
	require.Len(img.t, words, 2)
	source, given := context[words[0]]
	if !given {
		source = filepath.Join(folder, words[0])
	}
	target := words[1]
	if strings.HasSuffix(target, "/") {
		target += filepath.Base(words[0])
	}
	target = filepath.Join(img.root, img.in(target))
	raw, err := os.ReadFile(source)
	require.NoError(img.t, err)
	require.NoError(img.t, os.MkdirAll(filepath.Dir(target), 0o755))
	require.NoError(img.t, os.WriteFile(target, raw, mode))
}

// run starts the image's command. What the base image would bring along, this machine does.
func (img *image) run(env []string) *process {
	img.t.Helper()
	path := filepath.Join(img.root, "usr/local/bin")
	args := append([]string{filepath.Join(path, img.command[0])}, img.command[1:]...)
	env = append(env, "PATH="+path+":"+filepath.Dir(python(img.t))+":"+os.Getenv("PATH"))
	return start(img.t, command{args: args, env: env, dir: filepath.Join(img.root, img.workdir)})
}

// The example turns a usual worker image into one of ours by two lines: the files are where its command looks for them, and it
// does jobs and stops like any worker.
func TestExampleDockerfile(t *testing.T) {
	t.Parallel()
	img := buildImage(t, "../examples/Dockerfile", map[string]string{"runpodctl-worker": binary(t)})
	d := apidouble.New(t)
	w := &worker{process: img.run(append(environment(d, "w1"), checked...)), API: d}
	w.Offer(`{"id":"j1","input":{"name":"Ada"}}`)
	require.JSONEq(t, `{"hello":"Ada"}`, string(w.result(t, "j1").Output))
	require.Contains(t, w.stderr.String(), "Memory check passed")
	w.signal(t, syscall.SIGTERM)
	require.Zero(t, w.wait(t), w.stderr)
}
