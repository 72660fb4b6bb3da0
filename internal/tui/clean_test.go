package tui

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestClean(t *testing.T) {
	for name, tt := range map[string]struct{ in, want string }{
		"plain":                    {"a line", "a line"},
		"lines":                    {"one\r\ntwo\nthree\n", "one\ntwo\nthree"},
		"colour":                   {"\x1b[31mred\x1b[0m", "red"},
		"a title for the window":   {"\x1b]0;gotcha\x07text", "text"},
		"clipboard":                {"\x1b]52;c;aGk=\x1b\\text", "text"},
		"cursor and screen":        {"\x1b[2J\x1b[Htext\x1b[?1049l", "text"},
		"never ends, on its line":  {"\x1b]0;gotcha\nnext line", "next line"},
		"half of a sequence":       {"text\x1b[", "text"},
		"C1 as one byte":           {"a\x9b31mb", "a\uFFFD31mb"},
		"C1 as UTF-8":              {"a\u009b31mb", "a31mb"},
		"bell, backspace, null":    {"a\ab\bc\x00d\x7f", "abcd"},
		"progress bar":             {"10 %\r50 %\r100 %\ndone\r\n", "100 %\ndone"},
		"tabs":                     {"a\tb", "a    b"},
		"letters the other way":    {"a\u202egnp.exe\u2066", "agnp.exe"},
		"not UTF-8":                {"a\xffb", "a\uFFFDb"},
		"CJK and emoji stay":       {"モデル 🤖 👩‍💻", "モデル 🤖 👩‍💻"},
		"empty lines around go":    {"\n\n  indented\n\n", "  indented"},
		"a null within a sequence": {"\x1b\x00[31mred", "red"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, clean(tt.in)) })
	}
}

func TestCleanLine_IsOneLine(t *testing.T) {
	require.Equal(t, "one two three", cleanLine(" one\ntwo\r\n\tthree\u2028"))
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"text", "\x1b[31mred\x1b[0m", "\x1b]52;c;aGk=\a", "a\rb\n\x9b1m", "\u202e\u0085", "👩‍💻\x1b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out := clean(in)
		require.True(t, utf8.ValidString(out))
		for _, r := range out {
			require.False(t, r != '\n' && unicode.IsControl(r), "%q became %q", in, out)
		}
		require.False(t, strings.ContainsRune(cleanLine(in), '\n'))
	})
}
