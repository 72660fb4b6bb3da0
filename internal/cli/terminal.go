package cli

import (
	"io"
	"os"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"runpodctl-worker/internal/config"
)

// lively tells whether w is a screen for colours and a spinner.
func (s *session) lively(c *cli.Context, w io.Writer) bool {
	kind, _ := s.Lookup("TERM")
	return isTerminal(w) && !s.noColor(c) && kind != "dumb"
}

func (s *session) noColor(c *cli.Context) bool {
	if c.IsSet(flagNoColor) {
		return c.Bool(flagNoColor)
	}
	word, _ := s.Lookup(config.NoColor)
	return word != ""
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// width is that of a terminal, 0 of anything else.
func width(out *os.File) int {
	columns, _, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return 0
	}
	return columns
}
