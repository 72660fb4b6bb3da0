package cli

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/redact"
	"runpodctl-worker/internal/worker/apidouble"
)

// What must not be seen anywhere. The values tell where a leak comes from.
var planted = map[string]string{
	"RUNPOD_AI_API_KEY":          "planted-ai-key-1234567890",
	"RUNPOD_API_KEY":             "planted-api-key-1234567890",
	"BUCKET_SECRET_ACCESS_KEY":   "planted-bucket-key-1234567890",
	"RUNPODCTL_WORKER_API_KEY":   "planted-serve-key-1234567890",
	"a password in a URL":        "planted-password",
	"a signature in a URL":       "planted-signature",
	"a header":                   "planted-bearer-token",
	"a token in the take's URL":  "planted-take-token",
	"a key that a file holds":    "planted-file-key-1234567890",
	"a password of a checks URL": "planted-check-password",
}

func clean(t *testing.T, where, text string) {
	t.Helper()
	for what, value := range planted {
		for line := range strings.Lines(text) {
			require.NotContains(t, line, value, "%s shows %s", where, what)
		}
	}
}

// env is the part of planted that is variables.
func plantedEnv() map[string]string {
	env := map[string]string{}
	for name, value := range planted {
		if strings.ToUpper(name) == name {
			env[name] = value
		}
	}
	return env
}

// leaks is a handler that shows all it knows.
const leaks = `
import os, sys, runpod
print("loading with", os.environ["RUNPOD_AI_API_KEY"])
log = runpod.RunPodLogger()
def handler(job):
    print("printed", os.environ["RUNPOD_AI_API_KEY"], os.environ["BUCKET_SECRET_ACCESS_KEY"])
    halves = os.environ["RUNPOD_API_KEY"]
    for half in (halves[:9], halves[9:] + "\n"):
        sys.stdout.write(half)
        sys.stdout.flush()
    log.info("logged " + os.environ["RUNPOD_API_KEY"])
    log.secret("mine", os.environ["RUNPOD_API_KEY"])
    if job["id"] == "crash":
        print("last words", os.environ["RUNPOD_AI_API_KEY"], "Authorization: Bearer planted-bearer-token", flush=True)
        os._exit(7)
    raise ValueError("403 for https://bob:planted-password@s3/k?X-Amz-Signature=planted-signature with " + os.environ["RUNPOD_AI_API_KEY"])
runpod.serverless.start({"handler": handler})
`

func TestSecrets_RunShowsNone(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		t.Run(format, func(t *testing.T) { runShowsNone(t, format) })
	}
}

func runShowsNone(t *testing.T, format string) {
	t.Helper()
	echo := func(call apidouble.Call) *apidouble.Reply { // a proxy that quotes what it was sent
		return &apidouble.Reply{Status: http.StatusForbidden, Body: "denied: Authorization: " + call.Header.Get("Authorization") + " at /x?token=planted-take-token"}
	}
	h := onPlatform(t, plantedEnv(), func(api *apidouble.API) {
		api.On(apidouble.Ping, echo)
		api.Script(apidouble.Take, *echo(apidouble.Call{Header: http.Header{"Authorization": {planted["RUNPOD_AI_API_KEY"]}}}))
	}, "--metrics-addr", ":0", "--error-logs", "5", "--log-level", "DEBUG", "--log-format", format, "--handler", handlerFile(t, leaks))
	addr := h.addr()
	h.soon(addr+"/readyz", 200)
	h.api.Offer(`{"id":"raise","input":{}}`)
	require.Eventually(t, func() bool { return len(h.api.Accepted(apidouble.Done)) == 1 }, patience, 20*time.Millisecond)
	h.api.Offer(`{"id":"crash","input":{}}`)
	require.Eventually(t, func() bool { return len(h.api.Accepted(apidouble.Done)) == 2 }, patience, 20*time.Millisecond)

	for _, path := range []string{"/status.json", "/metrics", "/healthz", "/readyz"} {
		_, text := h.look(addr + path)
		clean(t, path, text)
	}
	require.Equal(t, exitOK, h.end())
	for _, call := range h.api.Accepted(apidouble.Done) {
		clean(t, "the error of job "+call.Job, call.Body)
		require.Contains(t, call.Body, redact.Mark)
	}
	require.Contains(t, h.api.Posts(apidouble.Done, "raise")[0].Body, `\"logs\": \"`)
	for name, text := range map[string]string{"stdout": h.stdout.String(), "stderr": h.stderr.String()} {
		clean(t, name, text)
		require.Contains(t, text, redact.Mark, name)
	}
}

// A program that nothing but its signals are passed on to prints as it likes.
func TestSecrets_SupervisedProgramsShowNone(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		t.Run(format, func(t *testing.T) {
			env := plantedEnv()
			for name, value := range env {
				t.Setenv(name, value)
			}
			env["RUNPOD_SKIP_FITNESS_CHECKS"] = "true"
			i := &invocation{env: env}
			require.Equal(t, exitOK, i.run("run", "--mode", "lb", "--log-format", format, "--", "sh", "-c",
				`echo "out $RUNPOD_API_KEY"; echo "err http://bob:planted-password@h" >&2; printf %s "$RUNPOD_AI_API_KEY"`))
			clean(t, "stdout", i.stdout.String())
			clean(t, "stderr", i.stderr.String())
			require.Equal(t, "out [REDACTED]\n[REDACTED]", i.stdout.String())
			require.Contains(t, i.stderr.String(), "err http://[REDACTED]@h\n")
		})
	}
}

func TestSecrets_ServeShowsNone(t *testing.T) {
	keyFile := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(keyFile, []byte(planted["a key that a file holds"]+"\n"), 0o600))
	env := plantedEnv()
	for name, value := range env {
		t.Setenv(name, value)
	}
	i := &invocation{env: env, signals: make(chan os.Signal, 3)}
	code := make(chan int, 1)
	handler := handlerFile(t, `
import os, runpod
print("loading with", os.environ["RUNPOD_API_KEY"], "and", os.environ["RUNPOD_AI_API_KEY"])
def handler(job): raise ValueError("no")
runpod.serverless.start({"handler": handler})
`)
	go func() {
		code <- i.run("serve", "--port", "0", "--log-level", "DEBUG", "--worker-key-file", keyFile, "--handler", handler)
	}()
	require.Eventually(t, func() bool { return strings.Contains(i.stderr.String(), "Ready for jobs") }, patience, 20*time.Millisecond)
	i.signals <- syscall.SIGTERM
	require.Equal(t, exitOK, <-code)
	clean(t, "stdout", i.stdout.String())
	clean(t, "stderr", i.stderr.String())
	require.Contains(t, i.stdout.String(), "loading with [REDACTED] and [REDACTED]\n")
}

func TestSecrets_DoctorShowsNone(t *testing.T) {
	checks := filepath.Join(t.TempDir(), "checks.yaml")
	require.NoError(t, os.WriteFile(checks, []byte(`checks:
  - {name: web, http: "http://bob:planted-check-password@127.0.0.1:1/x?token=planted-take-token"}
  - {name: says, exec: [sh, -c, "echo $RUNPOD_AI_API_KEY; echo Authorization: Bearer planted-bearer-token >&2; exit 3"]}
`), 0o600))
	for _, how := range []string{"--json", "--plain"} {
		t.Run(how, func(t *testing.T) {
			env := plantedEnv()
			env["RUNPOD_WEBHOOK_GET_JOB"] = "http://bob:planted-password@127.0.0.1:1/job-take/x?token=planted-take-token"
			for name, value := range env {
				t.Setenv(name, value)
			}
			i := &invocation{env: env}
			i.run("doctor", how, "--only", "network", "--only", "web", "--only", "says", "--only", "handler", "--checks", checks,
				"--handler", handlerFile(t, `
import os, sys
sys.exit("leaves with " + os.environ["RUNPOD_API_KEY"] + " and https://bob:planted-password@h/")
`))
			clean(t, "stdout", i.stdout.String())
			clean(t, "stderr", i.stderr.String())
			require.Contains(t, i.stdout.String(), redact.Mark)
		})
	}
}

func TestSecrets_ErrorsAndPanicsShowNone(t *testing.T) {
	s := &session{secrets: redact.New("planted-ai-key-1234567890")}
	err := s.secrets.Error(guard(func() error { panic(errors.New("with planted-ai-key-1234567890")) }))
	require.ErrorContains(t, err, "a mistake in this program: with [REDACTED], at cli.")
	require.ErrorContains(t, err, "secrets_test.go", "where it was")

	i := &invocation{env: plantedEnv()}
	require.Equal(t, exitUsage, i.run("run", "--ready", "ftp://bob:planted-password@h/", "--handler", "echo"))
	clean(t, "stderr", i.stderr.String())
}
