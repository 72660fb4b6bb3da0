package test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// kinds are the ways to write a handler, each with a file in handlers and a sample in testdata.
var kinds = []struct {
	file    string
	streams bool
}{
	{"sync.py", false},
	{"async.py", false},
	{"generator.py", true},
	{"async_generator.py", true},
}

// server is a running serve command.
type server struct {
	*process
	endpoint
}

var listening = regexp.MustCompile(`http://(?:127\.0\.0\.1|localhost):\d+`)

// serve starts the emulator on a free port and returns when it says where it listens.
func serve(t *testing.T, args ...string) *server {
	t.Helper()
	p := start(t, command{args: append([]string{binary(t), "serve", "--port", "0"}, args...)})
	eventually(t, func() bool { return listening.MatchString(p.stderr.String()) || !p.alive() }, "no address in the log")
	url := listening.FindString(p.stderr.String())
	require.NotEmpty(t, url, "serve has ended: %s", p.stderr)
	return &server{process: p, endpoint: endpoint{t: t, base: url + "/v2"}}
}

// serveHandler is serve with one of the handler files.
func serveHandler(t *testing.T, file string, args ...string) *server {
	t.Helper()
	return serve(t, append([]string{"--python", python(t), "--handler", handler(t, file)}, args...)...)
}

// url is the root of the server.
func (s *server) url() string { return strings.TrimSuffix(s.base, "/v2") }

var exported = regexp.MustCompile(`(?m)^export ([A-Z_]+)='(.*)'$`)

// workerVars are what a worker cannot do without.
var workerVars = []string{
	"RUNPOD_WEBHOOK_GET_JOB", "RUNPOD_WEBHOOK_POST_OUTPUT", "RUNPOD_WEBHOOK_POST_STREAM", "RUNPOD_WEBHOOK_PING",
	"RUNPOD_AI_API_KEY", "RUNPOD_ENDPOINT_ID", "RUNPOD_POD_ID",
}

// workerEnv is the environment that serve --print-env prints for a worker of its own.
func (s *server) workerEnv() []string {
	s.t.Helper()
	for _, name := range workerVars {
		eventually(s.t, func() bool { return strings.Contains(s.stdout.String(), "export "+name+"='") }, "no %s on stdout", name)
	}
	var env []string
	for _, match := range exported.FindAllStringSubmatch(s.stdout.String(), -1) {
		env = append(env, match[1]+"="+match[2])
	}
	return env
}
