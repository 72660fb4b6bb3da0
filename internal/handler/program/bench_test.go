package program_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/handler/program"
	"runpodctl-worker/internal/protocol"
)

// BenchmarkRoundTrip is one no-op job after the other through a real Python process.
func BenchmarkRoundTrip(b *testing.B) {
	for _, file := range []string{"sync.py", "async.py"} {
		b.Run(file, func(b *testing.B) {
			p := benchProgram(b, file)
			job := benchJob(b, `{}`)
			for b.Loop() {
				_, err := p.Handle(b.Context(), job, &sink{})
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkParallel keeps 16 jobs in an async handler.
func BenchmarkParallel(b *testing.B) {
	p := benchProgram(b, "async.py")
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		job := benchJob(b, `{}`)
		for pb.Next() {
			_, err := p.Handle(b.Context(), job, &sink{})
			require.NoError(b, err)
		}
	})
}

// BenchmarkStream is the cost of one item of a stream.
func BenchmarkStream(b *testing.B) {
	for _, file := range []string{"generator.py", "async_generator.py"} {
		b.Run(file, func(b *testing.B) {
			p := benchProgram(b, file)
			b.ResetTimer()
			_, err := p.Handle(b.Context(), benchJob(b, fmt.Sprintf(`{"count":%d}`, b.N)), &sink{})
			require.NoError(b, err)
		})
	}
}

// BenchmarkStart is from the command to the hello.
func BenchmarkStart(b *testing.B) {
	for _, file := range []string{"sync.py", "async.py"} {
		b.Run(file, func(b *testing.B) {
			for b.Loop() {
				p := benchProgram(b, file)
				require.NoError(b, p.Stop(b.Context()))
			}
		})
	}
}

func benchProgram(b *testing.B, file string) *program.Program {
	b.Helper()
	p := program.New(program.Options{
		Args: program.Command(handlerFile(file), ""),
		Log:  slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	_, err := p.Start(b.Context())
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, p.Stop(context.Background())) })
	return p
}

func benchJob(b *testing.B, input string) protocol.Job {
	b.Helper()
	job, err := protocol.ParseJob([]byte(`{"id":"b","input":` + input + `}`))
	require.NoError(b, err)
	return job
}
