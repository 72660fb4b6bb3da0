package cuda_test

import (
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/cudaprobe/cuda"
	"runpodctl-worker/test/gpufake"
)

// onFakeGPU runs the test that calls it once more, in a process that the loader gives the fake driver. It tells whether
// this is that process.
func onFakeGPU(t *testing.T) bool {
	t.Helper()
	if os.Getenv("TEST_ON_FAKE_GPU") != "" {
		runtime.LockOSThread()
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), gpufake.Build(t, gpufake.CUDA).Env("", "", 2)...)
	cmd.Env = append(cmd.Env, "TEST_ON_FAKE_GPU=1", "GORACE=atexit_sleep_ms=0") // the nap is for goroutines that still run
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+t.Name())
	return false
}

func driver(t *testing.T) *cuda.Driver {
	t.Helper()
	d, err := cuda.Open()
	require.NoError(t, err)
	require.NoError(t, d.Init())
	return d
}

func context(t *testing.T, d *cuda.Driver, index int) *cuda.Context {
	t.Helper()
	c, err := d.NewContext(index)
	require.NoError(t, err)
	return c
}

// So a program that does not lock its thread fails its tests.
func TestContext_BelongsToItsThread(t *testing.T) {
	if !onFakeGPU(t) {
		return
	}
	c := context(t, driver(t), 0)
	_, err := c.Memory()
	require.NoError(t, err)
	elsewhere := make(chan error)
	go func() {
		runtime.LockOSThread()
		_, err := c.Memory()
		elsewhere <- err
	}()
	require.ErrorAs(t, <-elsewhere, &cuda.Error{})
	require.NoError(t, c.Close())
}

func TestContexts_DoNotMix(t *testing.T) {
	if !onFakeGPU(t) {
		return
	}
	d := driver(t)
	one, two := context(t, d, 0), context(t, d, 1)
	a, err := one.Alloc(8)
	require.NoError(t, err)
	b, err := two.Alloc(8)
	require.NoError(t, err)
	require.NoError(t, cuda.Write(one, a, []uint32{1, 2}), "each call enters its own context")
	require.NoError(t, cuda.Write(two, b, []uint32{3, 4}))
	got := make([]uint32, 2)
	require.NoError(t, cuda.Read(one, got, a))
	require.Equal(t, []uint32{1, 2}, got)

	require.Equal(t, cuda.Error{Call: "cuMemcpyDtoH_v2", Code: 1, Name: "CUDA_ERROR_1"}, cuda.Read(one, got, b),
		"the memory of another GPU")
	require.Error(t, cuda.Read(one, make([]uint32, 3), a), "more than there is")
	require.NoError(t, one.Close())
	require.Error(t, cuda.Read(one, got, a), "what is closed is gone")
	require.NoError(t, two.Close())
}

func TestScope_FreesWhatItMade(t *testing.T) {
	if !onFakeGPU(t) {
		return
	}
	c := context(t, driver(t), 0)
	before, err := c.Memory()
	require.NoError(t, err)
	kept, err := c.Alloc(1 << 20)
	require.NoError(t, err)
	var inner cuda.Address
	require.NoError(t, c.Scope(func() error {
		inner, err = c.Alloc(1 << 20)
		return err
	}))
	require.Error(t, cuda.Read(c, make([]uint32, 1), inner))
	require.NoError(t, cuda.Write(c, kept, []uint32{1}))
	after, err := c.Memory()
	require.NoError(t, err)
	require.Equal(t, before.Free-1<<20, after.Free)
	require.NoError(t, c.Close())
}
