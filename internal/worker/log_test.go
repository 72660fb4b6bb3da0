package worker

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
)

func TestBrief(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"plain text", "output.score: NaN is not valid JSON", "output.score: NaN is not valid JSON"},
		{"an exception", protocol.ErrorInfo{Type: "<class 'ValueError'>", Message: "boom", Traceback: "long"}.String(), "<class 'ValueError'>: boom"},
		{"other JSON", `{"code":7}`, `{"code":7}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, brief(tt.text))
		})
	}
	long := brief(strings.Repeat("é", maxBrief))
	require.True(t, utf8.ValidString(long))
	require.LessOrEqual(t, len(long), maxBrief+len("…"))
}
