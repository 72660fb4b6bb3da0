// Package cli turns a command line into configuration, joins the rooms that do the work, and turns what
// comes back into an exit code.
package cli

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/redact"
)

// Process is everything that the program touches of its surroundings, so that tests can stand in for it.
type Process struct {
	Args           []string
	Lookup         config.Lookup
	Environ        func() []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Signals        <-chan os.Signal
	Exit           func(code int) // the last resort, at the third signal
}

// Exit codes, the same for every command.
const (
	exitOK          = 0
	exitFailed      = 1   // a job, a check or the worker failed
	exitUsage       = 2   // the command line, a file it names or the environment makes no sense
	exitUnsettled   = 3   // the drain ended with work unsettled
	exitInterrupted = 130 // a one-shot command was interrupted
)

// Main runs the program and returns its exit code.
func Main(p Process) int {
	args, command := splitCommand(p.Args)
	s := &session{Process: p, command: command, secrets: secretsOf(p.Lookup)}
	app := newApp(s)
	args = normalize(args, app)
	err := guard(func() error { return app.RunContext(context.Background(), args) })
	return report(p.Stderr, s.secrets.Error(err), asksForJSON(args))
}

// session is one invocation: the surroundings, and what follows "--" on the command line.
type session struct {
	Process
	command []string
	secrets *redact.Secrets
}

func newApp(s *session) *cli.App {
	app := &cli.App{
		Name:                      "runpodctl-worker",
		Usage:                     "Runpod serverless workers: check the machine, try at home, run in a container",
		Version:                   fullVersion(),
		Writer:                    s.Stdout,
		ErrWriter:                 s.Stderr,
		Flags:                     commonFlags(),
		HideHelpCommand:           true,
		DisableSliceFlagSeparator: true,
		OnUsageError:              onUsageError,
		ExitErrHandler:            func(*cli.Context, error) {}, // report does it
		Commands:                  []*cli.Command{doctorCommand(s), serveCommand(s), runCommand(s), cacheCommand(s)},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("unknown command %q; see runpodctl-worker --help", c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
	}
	app.CustomAppHelpTemplate = appHelp(app)
	for _, cmd := range app.Commands {
		cmd.OnUsageError = onUsageError
		cmd.HideHelpCommand = true
		cmd.Before = s.beforeCommand
	}
	return app
}

// report prints what went wrong, in one line, and gives the exit code that belongs to it.
func report(w io.Writer, err error, asJSON bool) int {
	if err == nil {
		return exitOK
	}
	code := exitFailed
	if exit, ok := errors.AsType[*exitError](err); ok {
		code, err = exit.code, exit.err
	}
	switch {
	case err == nil: // everything was said already
	case asJSON:
		printJSONError(w, code, err)
	default:
		printError(w, err)
	}
	return code
}
