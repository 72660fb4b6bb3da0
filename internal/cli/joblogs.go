package cli

import (
	"bytes"
	"io"
	"log/slog"
	"sync"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/handler/program"
	"runpodctl-worker/internal/joblog"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/redact"
)

const flagLogDir = "log-dir"

// jobLogs are the files of --log-dir. Without that flag they are nil, and keep nothing.
type jobLogs struct {
	dir     *joblog.Dir
	secrets *redact.Secrets
	log     *slog.Logger
	failed  sync.Once
}

func (s *session) openJobLogs(c *cli.Context, log *slog.Logger) (*jobLogs, error) {
	path := c.String(flagLogDir)
	switch {
	case path == "" && c.IsSet(flagLogDir):
		return nil, usagef("--%s: names no directory", flagLogDir)
	case path == "":
		return nil, nil //nolint:nilnil // none were asked for
	case c.Bool(flagNoWorker):
		return nil, usagef("--%s: a worker of your own prints elsewhere; --%s makes no sense beside it", flagNoWorker, flagLogDir)
	}
	dir, err := joblog.Open(path)
	if err != nil {
		return nil, usagef("--%s: %w", flagLogDir, err)
	}
	return &jobLogs{dir: dir, secrets: s.secrets, log: log}, nil
}

func (l *jobLogs) close() {
	if l != nil {
		_ = l.dir.Close() // nothing waits there to be written
	}
}

// through is a log whose lines about jobs are kept too.
func (l *jobLogs) through(log *slog.Logger) *slog.Logger {
	h, ok := log.Handler().(*logHandler)
	if !ok || l == nil {
		return log
	}
	next := *h
	next.jobs = l
	return slog.New(&next)
}

// keep adds a line to the file of a job. One that cannot be written is no reason to stop anything.
func (l *jobLogs) keep(job, level, message string) {
	if l == nil || job == "" {
		return
	}
	if err := l.dir.Append(job, jsonLine(level, job, message)); err != nil {
		l.failed.Do(func() {
			l.log.Warn("Lines of jobs are missing in --"+flagLogDir+"; this is said once.", slog.Any("error", err))
		})
	}
}

// line shows a line of the handler's program as if nobody had looked at it, and keeps it if a job has printed it.
func (l *jobLogs) line(to io.Writer, job protocol.Job, text []byte, cut int) {
	named, ok := program.ParseNamed(text)
	printed := levelName(slog.LevelInfo)
	var shown []byte
	switch {
	case !ok:
		message := printedText(l.secrets, text, cut)
		shown = []byte(message + "\n")
		if len(bytes.TrimSpace(text)) > 0 {
			l.keep(job.ID, printed, message)
		}
	case named.Level == "":
		message := l.secrets.String(named.Message)
		shown = []byte(message + "\n")
		l.keep(named.Job, printed, message)
	default:
		message := l.secrets.String(named.Message)
		shown = textLine(named.Level, named.Job, message)
		l.keep(named.Job, named.Level, message)
	}
	_, _ = to.Write(shown) // a screen that is gone must not stop the program
}
