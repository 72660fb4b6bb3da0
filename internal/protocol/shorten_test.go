package protocol_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
)

func TestShortError(t *testing.T) {
	const most = protocol.MaxError
	tests := []struct {
		name, text string
		holds      []string
	}{
		{"one byte too many", "begin" + strings.Repeat("x", most-7) + "end", []string{"begin", "end", "...TRUNCATED 31 BYTES..."}},
		{"many", "begin" + strings.Repeat("x", 30<<20) + "end", []string{"begin", "end", "...TRUNCATED 313"}},
		{"no ASCII", strings.Repeat("é😀", most), []string{"é😀", "BYTES..."}},
		{"no ASCII, and the cut elsewhere", "1" + strings.Repeat("😀", most), []string{"1😀", "BYTES..."}},
		{"no text at all", strings.Repeat("\xff", 2*most), []string{"...TRUNCATED 131072 BYTES..."}},
		{"a list", "[" + strings.Repeat("1,", most) + "1]", []string{"[1,1", "1,1]"}},
		{"an object cut short", `{"a":"` + strings.Repeat("x", most), []string{`{"a":"x`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			short := protocol.ShortError(tt.text)
			require.LessOrEqual(t, len(short), most)
			require.True(t, utf8.ValidString(short))
			for _, part := range tt.holds {
				require.Contains(t, short, part)
			}
			require.Equal(t, short, protocol.ShortError(short))
		})
	}
	require.Equal(t, strings.Repeat("\xff", most), protocol.ShortError(strings.Repeat("\xff", most)), "what fits is left alone")
}

func TestShortError_ObjectsStayObjects(t *testing.T) {
	long := strings.Repeat("long\n", protocol.MaxError)
	info := protocol.ErrorInfo{Type: "<class 'ValueError'>", Message: "begin" + long, Traceback: long + "end", WorkerID: "w1"}
	short := protocol.ShortError(info.String())
	require.LessOrEqual(t, len(short), protocol.MaxError)
	var got protocol.ErrorInfo
	require.NoError(t, json.Unmarshal([]byte(short), &got))
	require.Equal(t, info.Type, got.Type)
	require.Equal(t, info.WorkerID, got.WorkerID)
	require.True(t, strings.HasPrefix(got.Message, "beginlong\n"))
	require.True(t, strings.HasSuffix(got.Traceback, "long\nend"))
	require.Contains(t, got.Message, "...TRUNCATED 3")

	list := strings.Repeat("1,", protocol.MaxError)
	require.LessOrEqual(t, len(protocol.ShortError(`{"a":[`+list+`1]}`)), protocol.MaxError, "nothing in it can be cut")
}

func FuzzShortError(f *testing.F) {
	f.Add("x", `{"error_message":"m"}`, 70000)
	f.Add("é", `{"a":1}`, 50000)
	f.Fuzz(func(t *testing.T, unit, around string, n int) {
		if n < 0 || n > 4*protocol.MaxError || len(unit) > 64 {
			t.Skip()
		}
		for _, text := range []string{around + strings.Repeat(unit, n), `{"m":` + string(protocol.Quote(strings.Repeat(unit, n))) + "}"} {
			short := protocol.ShortError(text)
			if len(short) > protocol.MaxError || len(text) <= protocol.MaxError && short != text || short == "" && text != "" {
				t.Fatalf("%d bytes of %q became %d", len(text), unit, len(short))
			}
			if json.Valid([]byte(text)) && text[0] == '{' && strings.HasPrefix(text, `{"m":`) && !json.Valid([]byte(short)) {
				t.Fatalf("the object is broken: %.100q", short)
			}
		}
	})
}
