package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/protocol"
)

// printBanner says where the local Runpod listens and how to call it. A key is named, never shown.
func printBanner(w io.Writer, base string, endpoints []string, withKey bool, handler string) {
	pythonKey, jsKey, curlKey := `"local"`, `"local"`, ""
	if withKey {
		pythonKey = `os.environ["` + config.ServeKey + `"]`
		jsKey = "process.env." + config.ServeKey
		curlKey = ` \
  -H "Authorization: Bearer $` + config.ServeKey + `"`
	}
	fmt.Fprintf(w, `
Local Runpod on %[1]s, endpoint %[2]s, handler %[3]s

curl %[1]s/v2/%[4]s/runsync%[5]s \
  -H 'Content-Type: application/json' -d '{"input": {"name": "Ada"}}'

Python:
  runpod.api_key = %[6]s
  runpod.endpoint_url_base = "%[1]s/v2"
  runpod.Endpoint("%[4]s").run_sync({"name": "Ada"})

JavaScript:
  runpodSdk(%[7]s, { baseUrl: "%[1]s/v2" }).endpoint("%[4]s")

All calls, to read and to try: %[1]s/docs

`, base, strings.Join(endpoints, ", "), handler, endpoints[0], curlKey, pythonKey, jsKey)
}

// workerURLs are the templates that a worker of the local Runpod gets, in the form of the hosted ones.
func workerURLs(base, endpoint string) protocol.Templates {
	at := func(path string) string { return base + "/v2/" + endpoint + "/" + path + "?gpu=local" }
	return protocol.Templates{
		GetJob:     at("job-take/$ID"),
		PostOutput: at("job-done/$RUNPOD_POD_ID/$ID"),
		PostStream: at("job-stream/$RUNPOD_POD_ID/$ID"),
		Ping:       at("ping/$RUNPOD_POD_ID"),
	}
}

// placeholderKey stands where nobody asks for a key: without one, the official worker sends no heartbeats.
const placeholderKey = "local"

// platformEnv is what the platform would put into a worker's environment.
func platformEnv(urls protocol.Templates, endpoint, workerID, key string) []string {
	key = cmp.Or(key, placeholderKey)
	return []string{
		config.GetJob + "=" + urls.GetJob,
		config.PostOutput + "=" + urls.PostOutput,
		config.PostStream + "=" + urls.PostStream,
		config.Ping + "=" + urls.Ping,
		config.EndpointID + "=" + endpoint,
		config.PodID + "=" + workerID,
		config.AIAPIKey + "=" + key,
	}
}

// printEnv prints an environment for a shell to source, at once: a reader of the pipe gets all of it or none.
func printEnv(w io.Writer, env []string) {
	var text strings.Builder
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		fmt.Fprintf(&text, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	fmt.Fprint(w, text.String())
}
