package program_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/handler/program"
	"runpodctl-worker/internal/protocol"
)

var namedLines = []struct {
	name, text string
	want       program.Named
	ok         bool
}{
	{"printed", `{"requestId": "j1", "message": "hello", "level": null}`, program.Named{Job: "j1", Message: "hello"}, true},
	{"logged", `{"requestId": "j1", "message": "hello", "level": "WARN"}`, program.Named{Job: "j1", Message: "hello", Level: "WARN"}, true},
	{"of no job", `{"requestId": null, "message": "", "level": "INFO"}`, program.Named{Level: "INFO"}, true},
	{"no message", `{"requestId": "j1", "message": null, "level": "INFO"}`, program.Named{}, false},
	{"less", `{"requestId": "j1", "message": "hello"}`, program.Named{}, false},
	{"more", `{"requestId": "j1", "message": "hello", "level": "INFO", "time": "now"}`, program.Named{}, false},
	{"others", `{"requestID": "j1", "message": "hello", "level": "INFO"}`, program.Named{}, false},
	{"no text", `{"requestId": 1, "message": "hello", "level": "INFO"}`, program.Named{}, false},
	{"no object", `["requestId", "message", "level"]`, program.Named{}, false},
	{"null", `null`, program.Named{}, false},
	{"no JSON", `hello`, program.Named{}, false},
}

func TestParseNamed(t *testing.T) {
	for _, tt := range namedLines {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := program.ParseNamed([]byte(tt.text))
			require.Equal(t, tt.ok, ok)
			require.Equal(t, tt.want, got)
		})
	}
}

func FuzzParseNamed(f *testing.F) {
	for _, line := range namedLines {
		f.Add(line.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := program.ParseNamed([]byte(text))
		require.True(t, !ok || json.Valid([]byte(text)))
		require.True(t, ok || got == program.Named{})
	})
}

// What is printed names its job, whatever it is, and says that it was printed.
func TestLines_OfAProgramThatIsRead(t *testing.T) {
	c, got := startInLines(t, program.Options{NameJobs: true}, `
import os, sys, runpod
log = runpod.RunPodLogger()
print("loaded")
log.info("logged while loading")
def handler(job):
    print("pri", end=""); print("nted"); print("error", file=sys.stderr)
    print('{"own":  1}')
    print('{"requestId": "j2", "message": "with more", "level": "INFO", "more": 1}')
    log.warn("logged")
    os.write(1, b"past Python\n")
    return 1
runpod.serverless.start({"handler": handler})
print("after the end")
`)
	job, err := protocol.ParseJob([]byte(`{"id":"j1","batchId":"b1","input":{}}`))
	require.NoError(t, err)
	_, err = c.Handle(t.Context(), job, &sink{})
	require.NoError(t, err)
	require.NoError(t, c.Stop(t.Context()))
	for text, want := range map[string]program.Named{
		"printed":   {Job: "j1", Message: "printed"},
		"error":     {Job: "j1", Message: "error"},
		"own":       {Job: "j1", Message: `{"own":  1}`},
		"with more": {Job: "j1", Message: `{"requestId": "j2", "message": "with more", "level": "INFO", "more": 1}`},
		"] logged":  {Job: "j1", Level: "WARN", Message: "[batchId=b1] logged"},
	} {
		lines := got.await(t, text, 1)
		require.Len(t, lines, 1)
		named, ok := program.ParseNamed([]byte(lines[0].text))
		require.True(t, ok, lines[0].text)
		require.Equal(t, want, named)
	}
	for _, text := range []string{"loaded", "past Python", "after the end"} {
		require.Equal(t, text, got.await(t, text, 1)[0].text)
	}
}
