package test

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
	"runpodctl-worker/test/proctree"
)

// SR-11: as the first process of a container the worker reaps what nobody else does, and a stop of the container ends it.
func TestSR11AsTheFirstProcess(t *testing.T) {
	t.Parallel()
	tools(t, "unshare")
	unshare := []string{"unshare", "--map-root-user", "--pid", "--fork", "--mount-proc"}
	if err := exec.Command(unshare[0], append(unshare[1:], "true")...).Run(); err != nil {
		t.Skipf("this machine allows no process namespace: %v", err)
	}
	d := apidouble.New(t)
	args := append(unshare, binary(t), "run", "--", python(t), "-u", handler(t, "orphans.py"))
	env := append(environment(d, "w1"), "RUNPOD_SKIP_FITNESS_CHECKS=true")
	w := &worker{process: start(t, command{args: args, env: env, dir: t.TempDir()}), API: d}
	w.Offer(`{"id":"j1","input":{"orphans":20}}`)
	require.JSONEq(t, `{"dead":0,"worker":1}`, string(w.result(t, "j1").Output))

	below := proctree.Descendants(w.cmd.Process.Pid)
	require.NotEmpty(t, below)
	require.NoError(t, syscall.Kill(below[0], syscall.SIGTERM))
	require.Zero(t, w.wait(t), w.stderr)
}
