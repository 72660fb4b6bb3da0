package program_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"runpodctl-worker/internal/handler/program"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/worker"
)

var (
	_ worker.Handler = (*program.Program)(nil)
	_ worker.Scaler  = (*program.Program)(nil)
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is for what must happen soon, on a machine that may be busy.
const patience = 30 * time.Second

// output collects what a program prints; it also goes to the log of a failed test.
type output struct {
	mu   sync.Mutex
	text []byte
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, b...)
	return len(b), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}

// sink keeps what a job reports, in order.
type sink struct {
	mu       sync.Mutex
	chunks   []string
	progress []string
	ended    bool
	late     int
	onChunk  func(item string) error
}

func (s *sink) Chunk(item json.RawMessage) error {
	if s.onChunk != nil {
		if err := s.onChunk(string(item)); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chunks = append(s.chunks, string(item))
	return nil
}

func (s *sink) Progress(value json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		s.late++
	}
	s.progress = append(s.progress, string(value))
}

// child is a started program under test.
type child struct {
	*program.Program
	t     *testing.T
	ready protocol.Ready
	out   *output
}

func handlerFile(name string) string {
	path, err := filepath.Abs(filepath.Join("../../../testdata/handlers", name))
	if err != nil {
		panic(err)
	}
	return path
}

// write makes a handler file in a directory of its own.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "handler.py")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func options(t *testing.T, o program.Options) (program.Options, *output) {
	t.Helper()
	out := &output{}
	if o.Stdout == nil {
		o.Stdout = out
	}
	if o.Stderr == nil {
		o.Stderr = out
	}
	o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the program's output:\n%s", out)
		}
	})
	return o, out
}

func start(t *testing.T, o program.Options) *child {
	t.Helper()
	o, out := options(t, o)
	p := program.New(o)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ready, err := p.Start(ctx)
	require.NoError(t, err, out)
	c := &child{p, t, ready, out}
	t.Cleanup(func() { c.stop() })
	return c
}

func startFile(t *testing.T, path string) *child {
	t.Helper()
	return start(t, program.Options{Args: program.Command(path, "")})
}

func (c *child) stop() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(c.t, c.Stop(ctx))
}

// do runs a job whose input is given as JSON.
func (c *child) do(input string) (protocol.Outcome, *sink) {
	c.t.Helper()
	s := &sink{}
	out, err := c.handle(c.t.Context(), "job-1", input, s)
	require.NoError(c.t, err)
	return out, s
}

func (c *child) handle(ctx context.Context, id, input string, s *sink) (protocol.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	job, err := protocol.ParseJob([]byte(`{"id":"` + id + `","input":` + input + `}`))
	if err != nil {
		return protocol.Outcome{}, err
	}
	out, err := c.Handle(ctx, job, s)
	out = whole(c.t, out)
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	return out, err
}

// whole is an outcome with its output in memory.
func whole(t *testing.T, out protocol.Outcome) protocol.Outcome {
	t.Helper()
	if out.Spool == nil {
		return out
	}
	output, err := io.ReadAll(io.NewSectionReader(out.Spool, 0, out.Spool.Size()))
	require.NoError(t, err)
	require.NoError(t, out.Spool.Close())
	out.Output, out.Spool = output, nil
	return out
}

// shows waits for a text in the program's output, which comes another way than its results.
func (c *child) shows(text string) {
	c.t.Helper()
	require.Eventually(c.t, func() bool { return strings.Contains(c.out.String(), text) },
		patience, 10*time.Millisecond, "want in the output: %s", text)
}
