package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/mistake"
)

// exitError is an error that knows its exit code. Without err nothing is left to print.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usagef is an error of whoever called the program: exit 2.
func usagef(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// guard has a panic be an error as well.
func guard(run func() error) (err error) {
	if wrong := mistake.Catch(func() { err = run() }); wrong != nil {
		return wrong
	}
	return err
}

// silent ends the program with a code after everything was said already.
func silent(code int) error { return &exitError{code: code} }

// wanted says what kind of value a flag takes.
func wanted(f cli.Flag) string {
	switch f.(type) {
	case *cli.DurationFlag:
		return "a time with its unit, like 500ms, 30s or 2m"
	case *cli.IntFlag, *cli.Int64Flag:
		return "a whole number"
	case *cli.BoolFlag:
		return "true or false"
	default:
		return "another value"
	}
}

func printError(w io.Writer, err error) {
	fmt.Fprintln(w, "runpodctl-worker:", visible(strings.TrimRight(err.Error(), "\n")))
}

// visible is a text in which a terminal finds nothing to obey: the name of a file in it may be anybody's.
func visible(text string) string {
	var out strings.Builder
	for _, r := range text {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			out.WriteRune(r)
		} else {
			out.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return out.String()
}

// asksForJSON tells whether errors are to be JSON: of those too for which the flags could not be read.
func asksForJSON(args []string) bool {
	asks := false
	for _, arg := range args {
		name, value, given := strings.Cut(arg, "=")
		if name == "--"+flagJSON {
			yes, err := strconv.ParseBool(value)
			asks = !given || err == nil && yes
		}
	}
	return asks
}

// printJSONError is printError for whoever reads JSON: one flat object, whose code is a word that does not change.
func printJSONError(w io.Writer, code int, err error) {
	names := map[int]string{exitUsage: "usage", exitUnsettled: "unsettled", exitInterrupted: "interrupted"}
	_ = json.NewEncoder(w).Encode(map[string]string{ // stderr may be gone
		"code": cmp.Or(names[code], "failed"), "error": strings.TrimRight(err.Error(), "\n"),
	})
}

// onUsageError makes one line of the flag package's message, which calls every flag -name and is
// followed by the whole help text otherwise.
func onUsageError(c *cli.Context, err error, _ bool) error {
	const (
		undefined = "flag provided but not defined: -"
		twice     = "Cannot use two forms of the same flag: "
	)
	msg := err.Error()
	if names, ok := strings.CutPrefix(msg, twice); ok {
		one, other, _ := strings.Cut(names, " ")
		msg = fmt.Sprintf("--%s and --%s are the same flag: give one", one, other)
	}
	if name, ok := strings.CutPrefix(msg, undefined); ok {
		msg = "unknown flag --" + strings.TrimPrefix(name, "-")
	}
	for _, before := range []string{"for flag -", "for -", "needs an argument: -"} {
		msg = strings.Replace(msg, before, before+"-", 1)
	}
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		msg = strings.Replace(msg, "for flag --"+name+": parse error", "for flag --"+name+": want "+wanted(f), 1)
	}
	return usagef("%s; see %s --help", msg, c.Command.HelpName)
}
