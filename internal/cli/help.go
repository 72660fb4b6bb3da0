package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// flagGroup is a part of a command's help.
type flagGroup struct {
	title string
	flags []cli.Flag
}

// word is one that a command takes, and what it means.
type word struct{ name, meaning string }

const (
	helpWidth  = 80
	helpGutter = 26 // where the descriptions begin
)

// newCommand is a command with its help: what it is for, examples, and its flags in groups, the ones that
// are wanted first at the top. One that the command line does not name is only listed: the flags of all of them take
// longer than all else at a start.
func (s *session) newCommand(name, usage string, examples []string, groups func() []flagGroup, action cli.ActionFunc) *cli.Command {
	return s.newCommandOf(name, "[flags] [-- COMMAND…]", usage, nil, examples, groups, action)
}

// newCommandOf is newCommand for one with arguments of its own, the first of which is one of the words.
func (s *session) newCommandOf(name, arguments, usage string, words []word, examples []string, groups func() []flagGroup, action cli.ActionFunc) *cli.Command {
	cmd := &cli.Command{Name: name, Usage: usage, Action: action}
	if !slices.Contains(s.Args, name) {
		return cmd
	}
	var help strings.Builder
	fmt.Fprintf(&help, "%s\n\nUsage:\n  runpodctl-worker %s %s\n\n", strings.Join(wrap(usage, helpWidth), "\n"), name, arguments)
	for _, w := range words {
		help.WriteString(helpEntry(w.name, w.meaning))
	}
	if len(words) > 0 {
		help.WriteByte('\n')
	}
	help.WriteString("Examples:\n")
	for _, example := range examples {
		fmt.Fprintf(&help, "  runpodctl-worker %s\n", example)
	}
	for _, group := range groups() {
		cmd.Flags = append(cmd.Flags, group.flags...)
		fmt.Fprintf(&help, "\n%s:\n", group.title)
		for _, f := range group.flags {
			help.WriteString(flagHelp(f))
		}
	}
	help.WriteString("\nFlags may be written with dashes or underscores, --test_input or --test-input.\n")
	cmd.CustomHelpTemplate = help.String()
	return cmd
}

// appHelp is the help of the program itself, in the form of that of its commands.
func appHelp(app *cli.App) string {
	var help strings.Builder
	for _, line := range wrap(app.Usage+".", helpWidth) {
		help.WriteString(line + "\n")
	}
	fmt.Fprintf(&help, "\nUsage:\n  %s COMMAND [flags]\n\nCommands:\n", app.Name)
	for _, cmd := range app.Commands {
		help.WriteString(helpEntry(cmd.Name, cmd.Usage))
	}
	help.WriteString("\nFlags of every command:\n")
	for _, f := range app.Flags {
		help.WriteString(flagHelp(f))
	}
	help.WriteString(helpEntry("--help", "show help, also that of a command"))
	help.WriteString(helpEntry("--version", "print the version"))
	return help.String()
}

func flagHelp(f cli.Flag) string {
	d := describe(f)
	if d.hidden {
		return ""
	}
	text := d.usage
	if d.value != "" {
		text += " (default: " + d.value + ")"
	}
	return helpEntry(d.head(), text)
}

// helpEntry puts a description beside what it describes, or beneath where that is long.
func helpEntry(head, text string) string {
	head = "  " + head
	lines := wrap(text, helpWidth-helpGutter)
	var out strings.Builder
	if utf8.RuneCountInString(head) < helpGutter {
		fmt.Fprintf(&out, "%-*s%s\n", helpGutter, head, lines[0])
		lines = lines[1:]
	} else {
		out.WriteString(head + "\n")
	}
	for _, line := range lines {
		fmt.Fprintf(&out, "%*s%s\n", helpGutter, "", line)
	}
	return out.String()
}

// description is a flag as people read it.
type description struct {
	name, placeholder, usage, value string
	hidden                          bool
}

func (d description) head() string { return strings.TrimSpace("--" + d.name + " " + d.placeholder) }

// describe takes a flag apart. The placeholder stands in backticks in the usage text.
func describe(f cli.Flag) description {
	d := description{name: f.Names()[0]}
	switch f := f.(type) {
	case *cli.StringFlag:
		d.usage, d.value, d.placeholder, d.hidden = f.Usage, f.Value, "TEXT", f.Hidden
	case *cli.IntFlag:
		d.usage, d.value, d.placeholder, d.hidden = f.Usage, strconv.Itoa(f.Value), "N", f.Hidden
	case *cli.DurationFlag:
		d.usage, d.placeholder, d.hidden = f.Usage, "TIME", f.Hidden
		if f.Value != 0 {
			d.value = shortTime(f.Value.String())
		}
	case *cli.StringSliceFlag:
		d.usage, d.placeholder, d.hidden = f.Usage, "TEXT", f.Hidden
		if f.Value != nil {
			d.value = strings.Join(f.Value.Value(), ", ")
		}
	case *cli.BoolFlag:
		d.usage, d.hidden = f.Usage, f.Hidden
	}
	if before, rest, ok := strings.Cut(d.usage, "`"); ok {
		if name, after, ok := strings.Cut(rest, "`"); ok {
			d.placeholder, d.usage = name, strings.TrimPrefix(before+name+after, name+": ")
		}
	}
	if strings.Contains(d.usage, "(default: ") { // it is found out at run time; the zero value is not it
		d.value = ""
	}
	return d
}

// shortTime takes the zeros off the end of 1m0s and 24h0m0s.
func shortTime(text string) string {
	for _, zero := range []string{"m0s", "h0m"} {
		if short, ok := strings.CutSuffix(text, zero); ok {
			text = short + zero[:1]
		}
	}
	return text
}

func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}
