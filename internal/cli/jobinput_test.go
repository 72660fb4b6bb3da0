package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("job.json", []byte("\xef\xbb\xbf{\"input\":1}\n"), 0o644))
	require.NoError(t, os.WriteFile("bad.json", []byte("{\n\"input\": nope}"), 0o644))
	require.NoError(t, os.WriteFile("empty.json", nil, 0o644))
	require.NoError(t, os.WriteFile("latin1.json", []byte("{\n\"input\": \"h\xe9llo\"}"), 0o644))
	require.NoError(t, os.WriteFile("utf16.json", []byte("\xff\xfe{\x00}\x00"), 0o644))
	tests := []struct {
		name, value, stdin string
		want, wantErr      string
	}{
		{name: "text", value: `{"input":1}`, want: `{"input":1}`},
		{name: "text with space around", value: " \n{\"input\":1}\n", want: `{"input":1}`},
		{name: "a file with a byte order mark", value: "job.json", want: `{"input":1}`},
		{name: "a file with @", value: "@job.json", want: `{"input":1}`},
		{name: "standard input", value: "-", stdin: `{"input":2}`, want: `{"input":2}`},
		{name: "a bare value", value: "null", want: "null"},
		{name: "bad text", value: `{"input":`, wantErr: "--test_input is not JSON: line 1, column 9"},
		{name: "a bad file", value: "bad.json", wantErr: "--test_input bad.json is not JSON: line 2"},
		{name: "an empty file", value: "empty.json", wantErr: "--test_input empty.json is not JSON: it is empty"},
		{name: "no such file", value: "gone.json", wantErr: "--test_input: gone.json: no such file or directory"},
		{name: "an empty value", value: "", wantErr: "--test_input: is empty"},
		{name: "another encoding", value: "latin1.json", wantErr: "--test_input latin1.json is not UTF-8: byte 0xe9 in line 2"},
		{name: "UTF-16", value: "utf16.json", wantErr: "--test_input utf16.json is UTF-16; save it as UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readJSON("test_input", tt.value, strings.NewReader(tt.stdin))
			if tt.wantErr != "" {
				require.ErrorContains(t, err, tt.wantErr)
				require.NotContains(t, err.Error(), "\n")
				return
			}
			require.NoError(t, err)
			require.JSONEq(t, tt.want, string(got))
		})
	}
}

func TestDiffJSON(t *testing.T) {
	tests := []struct {
		name, want, got string
		diff            []string
	}{
		{"the same in another order", `{"a":1,"b":[1,2]}`, `{"b":[1,2],"a":1}`, nil},
		{"1 and 1.0", `1`, `1.0`, nil},
		{"large integers are not rounded", `9007199254740993`, `9007199254740992`, []string{"output: want 9007199254740993, got 9007199254740992"}},
		{"larger ones neither", `12345678901234567890124`, `12345678901234567890123`, []string{"output: want 12345678901234567890124, got 12345678901234567890123"}},
		{"a value deep inside", `{"a":[{"b":1}]}`, `{"a":[{"b":2}]}`, []string{"output.a[0].b: want 1, got 2"}},
		{"a missing key and one too many", `{"a":1}`, `{"b":1}`, []string{"output.a: missing, want 1", "output.b: unexpected 1"}},
		{"lists of other lengths", `[1]`, `[1,2]`, []string{"output[1]: unexpected 2"}},
		{"another type", `{}`, `null`, []string{"output: want {}, got null"}},
		{"nothing came", `1`, ``, []string{"output: want 1, got "}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.diff, diffJSON("output", []byte(tt.want), []byte(tt.got)))
		})
	}
}
