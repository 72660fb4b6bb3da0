package server

import (
	"net/url"
	"strings"
)

// target is what the path of a worker's call says.
type target struct {
	call   string // "job-take", …
	worker string
	job    string // job-done and job-stream only
	extra  string // parameters that came behind the path
}

// segments is how many path segments follow the name of each call.
var segments = map[string]int{
	"job-take":       1,
	"job-take-batch": 1,
	"job-stop":       1,
	"ping":           1,
	"job-done":       2,
	"job-stream":     2,
}

// parseTarget reads an escaped path without its prefix, such as "/job-done/w1/j1".
//
// Workers append "&name=value" to their URL templates. A template without a "?" therefore delivers
// the parameters inside the last segment, as in "/job-take/w1&job_in_progress=0".
func parseTarget(path string) (target, bool) {
	var t target
	path, t.extra, _ = strings.Cut(path, "&")
	call, rest, _ := strings.Cut(strings.Trim(path, "/"), "/")
	t.call = call
	worker, job, two := strings.Cut(rest, "/")
	switch n := segments[call]; {
	case n == 0, two != (n == 2), worker == "", two && job == "", strings.Contains(job, "/"):
		return target{}, false
	}
	var err error
	if t.worker, err = url.PathUnescape(worker); err != nil {
		return target{}, false
	}
	if t.job, err = url.PathUnescape(job); err != nil {
		return target{}, false
	}
	return t, true
}

// withoutPrefix cuts an escaped path down to the part that names the call. A prefix may be anything,
// even the name of a call, so the first segment counts that has a call's name and number of successors.
func withoutPrefix(path string) string {
	plain, _, _ := strings.Cut(path, "&")
	left := strings.Count(strings.TrimRight(plain, "/"), "/")
	for at := strings.IndexByte(plain, '/'); at >= 0; left-- {
		name, rest, _ := strings.Cut(plain[at+1:], "/")
		if n := segments[name]; n > 0 && n == left-1 {
			return path[at:]
		}
		if rest == "" {
			break
		}
		at += 1 + len(name)
	}
	return path
}

// param is the value of a parameter, wherever it came; empty when absent.
func (t target) param(query, name string) string {
	for _, q := range [2]string{query, t.extra} {
		for q != "" {
			var pair string
			pair, q, _ = strings.Cut(q, "&")
			key, value, _ := strings.Cut(pair, "=")
			if key != name {
				continue
			}
			if plain, err := url.QueryUnescape(value); err == nil {
				return plain
			}
			return value
		}
	}
	return ""
}
