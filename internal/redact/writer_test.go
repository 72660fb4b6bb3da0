package redact_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/redact"
)

func TestWriter(t *testing.T) {
	secrets := redact.New("s3cr3t-key", "rosebud-1941")
	for _, tt := range []struct {
		name   string
		writes []string
		shown  []string // after each of them
		end    string   // what a Flush adds
	}{
		{"a line", []string{"hello\n"}, []string{"hello\n"}, ""},
		{"a prompt", []string{"name? "}, []string{"name? "}, ""},
		{"a progress bar", []string{"\r10%", "\r20%"}, []string{"\r10%", "\r20%"}, ""},
		{"a key in a line", []string{"key s3cr3t-key!\n"}, []string{"key [REDACTED]!\n"}, ""},
		{"a key in two pieces", []string{"key s3cr", "3t-key!\n"}, []string{"key ", "[REDACTED]!\n"}, ""},
		{"a key byte by byte", strings.Split("a s3cr3t-key b", ""), nil, "[REDACTED] b"},
		{"what begins like one", []string{"a s3cr", "et\n"}, []string{"a ", "s3cret\n"}, ""},
		{"what begins like one, at the end", []string{"a s3c"}, []string{"a "}, "s3c"},
		{"most of one, at the end", []string{"a s3cr3t-k"}, []string{"a "}, "[REDACTED]"},
		{"a password without its host, at the end", []string{"at https://bob:hun"}, []string{"at https"}, "://[REDACTED]"},
		{"a port, at the end", []string{"at http://localhost:8000"}, []string{"at http"}, "://localhost:8000"},
		{"an address, at the end", []string{"at http://[::1]:80"}, []string{"at http"}, "://[::1]:80"},
		{"a part of a platform's key, at the end", []string{"rpa_ABC"}, []string{""}, "[REDACTED]"},
		{"a part of a token, at the end", []string{"bearer abc"}, []string{""}, "bearer [REDACTED]"},
		{"a key before a carriage return", []string{"s3cr3t-key", "\r"}, []string{"", "[REDACTED]\r"}, ""},
		{"two keys", []string{"s3cr3t-key, rosebud", "-1941\n"}, []string{"", "[REDACTED], [REDACTED]\n"}, ""},
		{"a key over two lines is none", []string{"s3cr3t\n-key\n"}, []string{"s3cr3t\n-key\n"}, ""},
		{"a password in pieces", []string{"at https", ":/", "/bob:hun", "ter2@h/x\n"}, []string{"at http", "s", "", "://[REDACTED]@h/x\n"}, ""},
		{"a URL without one", []string{"at https://h/x", " it is\n"}, []string{"at https", "://h/x it is\n"}, ""},
		{"a header in pieces", []string{"AUTH", "orization: Bea", "rer abcdefgh", "ij\n"}, []string{"", "", "", "AUTHorization: [REDACTED]\n"}, ""},
		{"a signature in pieces", []string{"/k?X-Amz-Signature=ab", "cd&e=1\n"}, []string{"/k?X-Amz-Signature", "=[REDACTED]&e=1\n"}, ""},
		{"a key of the platform", []string{"rp", "a_ABCDEFGHIJ", "KLMNOP1234\n"}, []string{"", "", "[REDACTED]\n"}, ""},
		{"colours are no parameters", []string{"\x1b[1;32mok\x1b[0m"}, []string{"\x1b[1;32mok\x1b[0m"}, ""},
		{"bytes that are no text", []string{"\xff\xfe\x00s3cr3t-key\xff\n"}, []string{"\xff\xfe\x00[REDACTED]\xff\n"}, ""},
		{"letters that change their length", []string{"İ s3cr3t-", "key\n"}, []string{"", "İ [REDACTED]\n"}, ""},
		{"line after line", []string{"a\r\nb s3cr3t-key\nc"}, []string{"a\r\nb [REDACTED]\nc"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			w := secrets.Writer(&out)
			for i, text := range tt.writes {
				before := out.Len()
				n, err := w.Write([]byte(text))
				require.NoError(t, err)
				require.Equal(t, len(text), n)
				if tt.shown != nil {
					require.Equal(t, tt.shown[i], out.String()[before:])
				}
			}
			before := out.Len()
			w.Flush()
			require.Equal(t, tt.end, out.String()[before:])
		})
	}
}

func TestWriter_ALineWithoutEnd(t *testing.T) {
	var out bytes.Buffer
	w := redact.New("s3cr3t-key").Writer(&out)
	text := "https://" + strings.Repeat("x", 1<<20)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.GreaterOrEqual(t, out.Len(), 15*64<<10, "it does not wait for ever")
	w.Flush()
	require.Equal(t, text, out.String())
}

// Wherever a line without end is cut, it comes out as it would in one piece.
func TestWriter_CutsNoSecretInTwo(t *testing.T) {
	secrets := redact.New("s3cr3t-key", "two words of it")
	for name, secret := range map[string]string{
		"a known value":       "s3cr3t-key",
		"one with spaces":     "two words of it",
		"a password in a URL": "https://bob:hunter2@host/x",
		"a header":            "'Authorization' : Bearer abcdefghij",
		"a signature":         "https://host/k?X-Amz-Signature=abcdefghij&e=1",
		"a key":               "rpa_ABCDEFGHIJKLMNOP1234",
		"a long one":          "https://bob:" + strings.Repeat("hunter2", 2000) + "@host",
	} {
		t.Run(name, func(t *testing.T) {
			for _, end := range []int{48 << 10, 64 << 10} {
				step := max(1, len(secret)/64)
				for n := 0; n <= len(secret); n += step {
					text := strings.Repeat("ab=c ", end/5+1)[:end-n-1] + "," + secret + "," + strings.Repeat("ab=c ", 1<<8)
					var out bytes.Buffer
					w := secrets.Writer(&out)
					for b := []byte(text); len(b) > 0; {
						n, err := w.Write(b[:min(len(b), 20000)])
						require.NoError(t, err)
						b = b[n:]
					}
					w.Flush()
					if want := secrets.String(text); want != out.String() { // the texts are too long to be printed
						at := strings.Index(out.String(), "ab=c ,") + 6
						require.Fail(t, "shown", "%d of %d bytes before %d: %.100s", n, len(secret), end, out.String()[at:])
					}
				}
			}
		})
	}
}

func TestWriter_AValueWhereALineIsCut(t *testing.T) {
	const key = "s3cr3t-key"
	for cut := range len(key) + 1 {
		var out bytes.Buffer
		w := redact.New(key).Writer(&out)
		text := strings.Repeat("x", 64<<10-cut)
		for _, piece := range []string{text + key, " and more\n"} {
			_, err := w.Write([]byte(piece))
			require.NoError(t, err)
		}
		require.Equal(t, text+redact.Mark+" and more\n", out.String(), "%d bytes of it before the cut", cut)
	}
}

type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestWriter_TellsThatNobodyReads(t *testing.T) {
	_, err := redact.New().Writer(gone{}).Write([]byte("x\n"))
	require.EqualError(t, err, "gone")
}

// However a text comes, it goes out as it would in one piece, and shows no key.
func FuzzWriter(f *testing.F) {
	f.Add("at https://a:b@c?token=x\nrpa_ABCDEFGHIJKLMNOPQR s3cr3t-key", 3)
	f.Add("Authorization: Bearer x\r\nİ s3cr3t", 1)
	f.Fuzz(func(t *testing.T, text string, step int) {
		if step < 1 || len(text) > 4096 {
			t.Skip()
		}
		secrets := redact.New("s3cr3t-key")
		var whole, pieces bytes.Buffer
		w := secrets.Writer(&whole)
		_, _ = w.Write([]byte(text))
		w.Flush()
		w = secrets.Writer(&pieces)
		for rest := text; rest != ""; {
			n := min(step, len(rest))
			_, _ = w.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		w.Flush()
		if whole.String() != pieces.String() || strings.Contains(pieces.String(), "s3cr3t-key") {
			t.Fatalf("%q became %q in pieces of %d, and %q at once", text, pieces.String(), step, whole.String())
		}
	})
}

func BenchmarkWriter_LineOfAJob(b *testing.B) {
	var out bytes.Buffer
	w := redact.New("0123456789abcdef", "fedcba9876543210").Writer(&out)
	line := []byte("INFO   | job-1 | Finished. | took=12ms\n")
	b.ReportAllocs()
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		_, _ = w.Write(line)
		out.Reset()
	}
}
