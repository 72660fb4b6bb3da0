package fault

import "strings"

// call is what a path says: the name of a route, and the worker and the job that it is about.
type call struct{ route, worker, job string }

// parseCall reads a path with or without /v2/{endpoint}. Administration has no name: it never goes wrong.
func parseCall(path string) call {
	path, _, _ = strings.Cut(path, "&") // parameters of a URL template without "?"
	part := strings.Split(strings.Trim(path, "/"), "/")
	if part[0] == "v2" && len(part) > 2 {
		part = part[2:]
	}
	part = append(part, "", "")
	switch name := part[0]; name {
	case "_emulator":
		return call{}
	case takeRoute, "job-stop", "ping":
		return call{route: name, worker: part[1]}
	case "job-take-batch":
		return call{route: takeRoute, worker: part[1]}
	case "job-done", "job-stream":
		return call{route: name, worker: part[1], job: part[2]}
	case "status", "status-sync", "stream", "cancel", "retry":
		return call{route: name, job: part[1]}
	default:
		return call{route: name}
	}
}
