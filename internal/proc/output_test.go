package proc

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type broken struct{}

func (broken) Write([]byte) (int, error) { panic("out of order") }

func TestStart_AMistakeInTheOutputEndsTheProgram(t *testing.T) {
	for name, o := range map[string]Options{"stdout": {Stdout: broken{}}, "stderr": {Stderr: broken{}}} {
		t.Run(name, func(t *testing.T) {
			o.Args = []string{"sh", "-c", "echo out; echo err >&2; exec sleep 600"}
			p, err := Start(o)
			require.NoError(t, err)
			defer func() { require.NoError(t, p.Stop(t.Context())) }()
			<-p.Exited()
			require.ErrorContains(t, p.State().Err, "a mistake in this program: out of order, at proc.broken.Write")
		})
	}
}

func TestTail(t *testing.T) {
	for _, tt := range []struct {
		name   string
		writes []string
		want   []string
	}{
		{"lines", []string{"a\nb\n", "c"}, []string{"a", "b", "c"}},
		{"in pieces", []string{"a", "b", "\n", "c\nd"}, []string{"ab", "c", "d"}},
		{"progress bar", []string{"1%\r", "2%\r3%", "\r"}, []string{"3%"}},
		{"progress bar, then a line", []string{"1%\r99%\r", "done\n"}, []string{"done"}},
		{"progress bar that ends", []string{"1%\r99%\n"}, []string{"99%"}},
		{"CRLF", []string{"a\r\nb\r", "\nc"}, []string{"a", "b", "c"}},
		{"blank lines", []string{"a\n\n  \nb\n\n"}, []string{"a", "b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var tail tail
			write := tail.stream()
			for _, w := range tt.writes {
				write([]byte(w))
			}
			require.Equal(t, tt.want, tail.lines())
		})
	}
	t.Run("no torn word", func(t *testing.T) {
		var tail tail
		write := tail.stream()
		text := strings.Repeat("x", lineBytes-20)
		write([]byte(text + " http://bob:hunter2@host/\n" + text + " http://bob:hunter2@host/"))
		require.Equal(t, []string{text + " ", text + " "}, tail.lines())
	})
	t.Run("bounded", func(t *testing.T) {
		var tail tail
		out, errs := tail.stream(), tail.stream()
		errs([]byte("partial"))
		for i := range 1000 {
			out([]byte(strconv.Itoa(i) + strings.Repeat("x", 5000) + "\n"))
		}
		lines := tail.lines()
		require.Len(t, lines, tailLines)
		require.Len(t, lines[0], lineBytes)
		require.Equal(t, "partial", lines[tailLines-1])
	})
}
