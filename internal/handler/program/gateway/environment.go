package gateway

import (
	"cmp"
	"strings"

	"runpodctl-worker/internal/config"
)

// calls lists the variables that lead a worker to the platform: what its path must hold to be understood here, and the
// path for a platform that has others.
var calls = []struct{ variable, segment, path string }{
	{config.GetJob, "/job-take/", "/job-take/$ID"},
	{config.PostOutput, "/job-done/", "/job-done/$RUNPOD_POD_ID/$ID"},
	{config.PostStream, "/job-stream/", "/job-stream/$RUNPOD_POD_ID/$ID"},
	{config.Ping, "/ping/", "/ping/$RUNPOD_POD_ID"},
}

// templates are the variables above that are set, with what follows the host in their URLs.
type templates map[string]string

// readTemplates is nil where nothing says how to get a job.
func readTemplates(lookup func(string) string) templates {
	found := templates{}
	for _, call := range calls {
		if url := lookup(call.variable); url != "" {
			found[call.variable] = local(url, call.segment, call.path)
		}
	}
	if found[calls[0].variable] == "" {
		return nil
	}
	return found
}

// local is a template without scheme and host. It is cut as text, since its placeholders must stay as they are.
func local(url, segment, path string) string {
	_, rest, _ := strings.Cut(url, "://")
	at := strings.IndexAny(rest, "/?#")
	if at < 0 || !strings.Contains(rest[at:], segment) {
		return path
	}
	return rest[at:]
}

// proxies are the variables that would lead some clients to this machine's own address by way of another one.
var proxies = []string{"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"}

// Environment is what the program's own has to be changed by.
func (g *Gateway) Environment() []string {
	// The checks that an SDK brings along have been run by the worker; those of the user's stay on.
	env := []string{config.SkipSystem + "=" + Skip, config.SkipGPU + "=" + Skip}
	for _, call := range calls {
		if rest := g.routes[call.variable]; rest != "" {
			env = append(env, call.variable+"=http://"+g.addr+rest)
		}
	}
	for _, proxy := range proxies {
		if g.opts.Lookup(proxy) == "" {
			continue
		}
		direct := "127.0.0.1"
		if others := cmp.Or(g.opts.Lookup("no_proxy"), g.opts.Lookup("NO_PROXY")); others != "" {
			direct = others + "," + direct
		}
		return append(env, "no_proxy="+direct, "NO_PROXY="+direct)
	}
	return env
}

// Mark is an entry of Environment that no other program has.
func (g *Gateway) Mark() string {
	return calls[0].variable + "=http://" + g.addr + g.routes[calls[0].variable]
}

// Skip is the value with which an SDK's own checks of the machine are switched off.
const Skip = "true"
