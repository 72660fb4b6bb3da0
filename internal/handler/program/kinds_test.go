package program_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKinds(t *testing.T) {
	tests := []struct {
		file, kind string
		limit      int // before the first job
		limitAfter int
		input      string
		output     string
		chunks     []string
		stream     bool
	}{
		{"sync.py", "sync", 1, 1, `{"name":"é"}`, `{"hello":"é"}`, nil, false},
		{"async.py", "async", 0, 0, `{}`, `{"hello":"nobody"}`, nil, false},
		{"generator.py", "generator", 1, 1, `{}`, `[]`, []string{`{"item":0}`, `{"item":1}`, `{"item":2}`}, true},
		{"async_generator.py", "async generator", 0, 0, `{"count":2}`, `[]`, []string{`{"item":0}`, `{"item":1}`}, true},
		{"callable_object.py", "generator", 1, 1, `{}`, `[]`, []string{`"hello"`, `"nobody"`}, true},
		{"wrapped.py", "sync", 1, 0, `{}`, `{"hello":"nobody"}`, nil, false},
		{"aggregate.py", "generator", 1, 1, `{}`, `[0,1,2]`, []string{"0", "1", "2"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			c := startFile(t, handlerFile(tt.file))
			require.Contains(t, c.ready.Name, tt.file)
			require.Contains(t, c.ready.Name, ", "+tt.kind+")")
			require.Equal(t, tt.limit, c.Limit())
			for range 3 {
				out, s := c.do(tt.input)
				require.Empty(t, out.Error)
				require.Equal(t, tt.output, string(out.Output))
				require.Equal(t, tt.chunks, s.chunks)
				require.Equal(t, tt.stream, out.Stream)
				require.Equal(t, tt.limitAfter, c.Limit())
			}
		})
	}
}
