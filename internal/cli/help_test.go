package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"
)

// withFlags is a session whose line names every command, so that all have their flags.
var withFlags = &session{Process: Process{Args: []string{"doctor", "serve", "run", "cache"}}}

// The page lists every flag of every command; run with -v to see the rows that it should have.
func TestFlags_AreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	require.NoError(t, err)
	for _, cmd := range newApp(withFlags).Commands {
		_, section, ok := strings.Cut(string(page), "\n### "+cmd.Name+"\n")
		require.True(t, ok, "no section for %s", cmd.Name)
		section, _, _ = strings.Cut(section, "\n### ")
		for _, f := range cmd.Flags {
			if row := flagRow(f); row != "" {
				t.Log(row)
				require.Contains(t, section, row)
			}
		}
	}
}

func flagRow(f cli.Flag) string {
	d := describe(f)
	if d.hidden {
		return ""
	}
	return fmt.Sprintf("| `%s` | %s | %s |", d.head(), d.value, strings.ReplaceAll(d.usage, "|", "\\|"))
}

func TestFlagHelp(t *testing.T) {
	tests := []struct {
		name string
		flag cli.Flag
		want string
	}{
		{"a placeholder", &cli.StringFlag{Name: "f", Usage: "`FILE` to read"}, "  --f FILE                FILE to read\n"},
		{"a placeholder that is only a name", &cli.StringFlag{Name: "f", Usage: "`MODE`: a or b", Value: "a"}, "  --f MODE                a or b (default: a)\n"},
		{"a switch", &cli.BoolFlag{Name: "f", Usage: "do it"}, "  --f                     do it\n"},
		{"a time without its zeros", &cli.DurationFlag{Name: "f", Usage: "wait", Value: 86400e9}, "  --f TIME                wait (default: 24h)\n"},
		{"a time of nothing", &cli.DurationFlag{Name: "f", Usage: "wait; 0 = never"}, "  --f TIME                wait; 0 = never\n"},
		{"a default of its own words", &cli.IntFlag{Name: "f", Usage: "`N` of them (default: any)"}, "  --f N                   N of them (default: any)\n"},
		{"a long name", &cli.BoolFlag{Name: strings.Repeat("f", 30), Usage: "do it"}, "  --" + strings.Repeat("f", 30) + "\n" + strings.Repeat(" ", helpGutter) + "do it\n"},
		{"a long text", &cli.BoolFlag{Name: "f", Usage: strings.Repeat("word ", 20)}, "  --f                     " + strings.TrimSpace(strings.Repeat("word ", 11)) + "\n" + strings.Repeat(" ", helpGutter) + strings.TrimSpace(strings.Repeat("word ", 9)) + "\n"},
		{"a hidden one", &cli.BoolFlag{Name: "f", Hidden: true}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, flagHelp(tt.flag))
		})
	}
}
