package program_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/handler/program"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/redact"
)

// lines collects the output of a program as program.Options.Line gets it.
type lines struct {
	mu  sync.Mutex
	all []line
}

type line struct {
	job, text string
	cut       int
}

func (l *lines) take(_ io.Writer, job protocol.Job, text []byte, cut int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line{job.ID, string(text), cut})
}

// with are the lines that contain a text.
func (l *lines) with(text string) (found []line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line.text, text) {
			found = append(found, line)
		}
	}
	return found
}

func (l *lines) await(t *testing.T, text string, n int) []line {
	t.Helper()
	require.Eventually(t, func() bool { return len(l.with(text)) >= n }, patience, patience/1000, "want %d lines with %q", n, text)
	return l.with(text)
}

// startInLines starts a handler whose log lines are JSON.
func startInLines(t *testing.T, o program.Options, text string) (*child, *lines) {
	t.Helper()
	t.Setenv("RUNPODCTL_WORKER_LOG_FORMAT", "json")
	t.Setenv("RUNPOD_LOG_LEVEL", "INFO")
	got := new(lines)
	o.Line, o.Args = got.take, program.Command(write(t, text), "")
	return start(t, o), got
}

// record is a line of the log as the platform reads it.
type record struct {
	RequestID      *string `json:"requestId"`
	Message, Level string
}

func recordOf(t *testing.T, text string) record {
	t.Helper()
	var r record
	require.NoError(t, json.Unmarshal([]byte(text), &r), text)
	return r
}

func TestLines_NameTheirJob(t *testing.T) {
	c, got := startInLines(t, program.Options{}, `
import logging, os, subprocess, sys, time
import runpod
early = logging.getLogger("early"); early.addHandler(logging.StreamHandler())
log = runpod.RunPodLogger()
print("loaded")
def handler(job):
    kind = job["input"]
    if kind == "print": print("pri", end=""); print("nted"); print("error", file=sys.stderr)
    if kind == "logger": log.info("by the logger"); log.info("by the logger for another", "other")
    if kind == "logging": early.warning("by logging")
    if kind == "json": print('{"own": 1,   "spaces": true}')
    if kind == "bar":
        for i in range(1000): sys.stderr.write("\r%d%%" % i); sys.stderr.flush()
    if kind == "child": subprocess.run(["sh", "-c", "echo by a child"])
    if kind == "blank": print(); print("   ")
    if kind == "many": sys.stdout.writelines(["one\n", "two\nthree"])
runpod.serverless.start({"handler": handler})
`)
	require.Equal(t, []line{{text: "loaded"}}, got.await(t, "loaded", 1))
	got.await(t, "Starting Serverless Worker", 1) // else it may come when the first job runs
	for _, tt := range []struct {
		kind string
		want []string // messages
		ids  []string // of the lines; where there are none, all are the job's
	}{
		{"print", []string{"printed", "error"}, nil},
		{"logger", []string{"by the logger", "by the logger for another"}, []string{"j-logger", "other"}},
		{"logging", []string{"by logging"}, nil},
		{"bar", []string{"999%"}, nil},
		{"blank", nil, nil},
		{"many", []string{"one", "two", "three"}, nil},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			before := len(got.with(""))
			_, err := c.handle(t.Context(), "j-"+tt.kind, `"`+tt.kind+`"`, &sink{})
			require.NoError(t, err)
			for i, message := range tt.want {
				line := got.await(t, `"`+message+`"`, 1)[0]
				id := "j-" + tt.kind
				if tt.ids != nil {
					id = tt.ids[i]
				}
				require.Equal(t, record{&id, message, "INFO"}, recordOf(t, line.text))
			}
			require.Len(t, got.with("")[before:], len(tt.want))
		})
	}
	t.Run("a record of the program's own", func(t *testing.T) {
		_, err := c.handle(t.Context(), "j-json", `"json"`, &sink{})
		require.NoError(t, err)
		require.Equal(t, `{"own": 1,   "spaces": true}`, got.await(t, "own", 1)[0].text)
	})
	t.Run("a child of the program", func(t *testing.T) {
		// The line comes past Python; the job is still in the program as long as its sink holds it.
		_, err := c.handle(t.Context(), "j-child", `"child"`, &sink{})
		require.NoError(t, err)
		require.Contains(t, []string{"j-child", ""}, got.await(t, "by a child", 1)[0].job, "never another job's")
	})
}

func TestLines_OfAChildNameTheOnlyJob(t *testing.T) {
	c, got := startInLines(t, program.Options{}, `
import subprocess, runpod
def handler(job):
    for i in range(3):
        subprocess.run(["sh", "-c", "echo by a child"])
        yield i
runpod.serverless.start({"handler": handler})
`)
	seen := make(chan struct{})
	s := &sink{onChunk: func(item string) error {
		if item == "2" {
			<-seen // so that the job is there until its lines have come
		}
		return nil
	}}
	ended := make(chan error, 1)
	go func() { _, err := c.handle(context.Background(), "only", "1", s); ended <- err }()
	for _, line := range got.await(t, "by a child", 3) {
		require.Equal(t, "only", line.job)
	}
	close(seen)
	require.NoError(t, <-ended)
}

func TestLines_OfJobsSideBySideDoNotMix(t *testing.T) {
	c, got := startInLines(t, program.Options{}, `
import asyncio, runpod
log = runpod.RunPodLogger()
async def handler(job):
    for i in range(50):
        print(job["id"], end=" ")
        await asyncio.sleep(0)
        print("prints", i)
        log.info("%s logs %d" % (job["id"], i))
        await asyncio.to_thread(print, job["id"], "in a thread", i) if hasattr(asyncio, "to_thread") else None
runpod.serverless.start({"handler": handler})
`)
	var jobs sync.WaitGroup
	for i := range 10 {
		jobs.Go(func() {
			job, err := protocol.ParseJob(fmt.Appendf(nil, `{"id":"job-%d","batchId":"batch-%d","input":{}}`, i, i))
			if err == nil {
				_, err = c.Handle(context.Background(), job, &sink{})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	jobs.Wait()
	found := append(got.await(t, " prints ", 500), got.await(t, " logs ", 500)...)
	found = append(found, got.await(t, " in a thread ", 500)...)
	require.Len(t, found, 1500)
	for _, line := range found {
		r := recordOf(t, line.text)
		require.NotNil(t, r.RequestID, line.text)
		n := strings.TrimPrefix(*r.RequestID, "job-")
		require.True(t, strings.HasPrefix(r.Message, "[batchId=batch-"+n+"] job-"+n+" "), line.text)
	}
}

func TestLines_AreCutOnRunes(t *testing.T) {
	c, got := startInLines(t, program.Options{}, `
import runpod
log = runpod.RunPodLogger()
def handler(job):
    text = job["input"]["by"]
    for shift in range(4):
        whole = "x" * shift + ("é€😀\n" * 25000)
        log.info("logged " + whole) if text == "log" else print("printed " + whole.replace("\n", "|"))
runpod.serverless.start({"handler": handler})
`)
	for _, by := range []string{"log", "print"} {
		_, err := c.handle(t.Context(), "long", `{"by":"`+by+`"}`, &sink{})
		require.NoError(t, err)
	}
	for _, line := range append(got.await(t, "logged", 4), got.await(t, "printed", 4)...) {
		require.Less(t, len(line.text), 16<<10)
		require.Zero(t, line.cut)
		r := recordOf(t, line.text)
		require.Contains(t, r.Message, "TRUNCATED")
		require.NotContains(t, r.Message, "\uFFFD")
	}
}

func TestMistake_CostsTheProgramNotTheWorker(t *testing.T) {
	wrong := func(io.Writer, protocol.Job, []byte, int) { panic("out of order") }
	for name, script := range map[string]string{"while it prints": "echo line; exec sleep 600", "when it has ended": "printf rest"} {
		t.Run(name, func(t *testing.T) {
			p := program.New(program.Options{Args: []string{"sh", "-c", script}, Line: wrong, Stdout: io.Discard})
			_, err := p.Start(t.Context())
			require.ErrorContains(t, err, "a mistake in this program: out of order, at program_test.")
			require.NoError(t, p.Stop(t.Context()))
		})
	}
}

func TestErrorLogs(t *testing.T) {
	t.Setenv("MY_KEY", "s3cr3t-of-mine")
	c, _ := startInLines(t, program.Options{ErrorLogs: 3, Secrets: redact.New("s3cr3t-of-mine")}, `
import os, runpod
log = runpod.RunPodLogger()
def handler(job):
    print("early"); print('{"requestId": null, "message": "in JSON", "level": "INFO"}')
    log.info("logged"); print("key", os.environ["MY_KEY"], end="")
    if job["input"] == "long": print(); print("y" * 100000); print("z" * 100000)
    if job["input"] == "torn": print(); print("x " * 1020 + os.environ["MY_KEY"] + " y" * 5000 + os.environ["MY_KEY"] + " z" * 1020)
    if job["input"] == "returns": return {"error": "plain"}
    raise ValueError("no " + os.environ["MY_KEY"])
runpod.serverless.start({"handler": handler})
`)
	var info struct {
		Message string `json:"error_message"`
		Logs    string
	}
	t.Run("the last lines", func(t *testing.T) {
		out, _ := c.do(`"raise"`)
		require.NoError(t, json.Unmarshal([]byte(out.Error), &info))
		require.Equal(t, "in JSON\nlogged\nkey [REDACTED]", info.Logs)
		require.Equal(t, "no [REDACTED]", info.Message)
	})
	t.Run("within a bound", func(t *testing.T) {
		out, _ := c.do(`"long"`)
		require.NoError(t, json.Unmarshal([]byte(out.Error), &info))
		require.LessOrEqual(t, len(info.Logs), 16<<10)
		require.Contains(t, info.Logs, "TRUNCATED")
	})
	t.Run("no part of a secret where a line is cut", func(t *testing.T) {
		out, _ := c.do(`"torn"`)
		require.NoError(t, json.Unmarshal([]byte(out.Error), &info))
		require.Contains(t, info.Logs, "x \n...TRUNCATED 10028 CHARACTERS...\n z")
	})
	t.Run("an error that is a text stays one", func(t *testing.T) {
		out, _ := c.do(`"returns"`)
		require.Equal(t, "plain", out.Error)
	})
}

func TestErrorLogs_OnlyWhereAsked(t *testing.T) {
	c, _ := startInLines(t, program.Options{}, `
import runpod
def handler(job):
    print("said"); raise ValueError("no")
runpod.serverless.start({"handler": handler})
`)
	out, _ := c.do(`1`)
	require.NotContains(t, out.Error, "logs")
}

func TestLastLines_AreReadableAndClean(t *testing.T) {
	c, got := startInLines(t, program.Options{Secrets: redact.New("s3cr3t-of-mine")}, `
import os, runpod
def handler(job):
    print("s3cr3t-of-mine at http://u:p@h/"); os._exit(7)
runpod.serverless.start({"handler": handler})
`)
	_, err := c.handle(t.Context(), "j", "1", &sink{})
	require.ErrorContains(t, err, "\n[REDACTED] at http://[REDACTED]@h/")
	require.NotEmpty(t, got.with("s3cr3t"), "the log of the program is for whoever takes its lines")
}
