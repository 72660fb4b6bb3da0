package protocol

import (
	"net/url"
	"strconv"
	"strings"
)

// Templates are the URLs that the platform puts into a worker's environment. Any of them may be
// empty: the Hub's test runner gives neither a ping nor a stream URL.
type Templates struct {
	GetJob     string // RUNPOD_WEBHOOK_GET_JOB
	PostOutput string // RUNPOD_WEBHOOK_POST_OUTPUT
	PostStream string // RUNPOD_WEBHOOK_POST_STREAM
	Ping       string // RUNPOD_WEBHOOK_PING
}

const (
	takeSegment  = "/job-take/"
	batchSegment = "/job-take-batch/"
	stopSegment  = "/job-stop/"
)

// Take is the URL that asks for up to n jobs.
func (t Templates) Take(worker string, n int, busy bool) string {
	u := forWorker(t.GetJob, worker)
	if n > 1 && strings.Contains(u, takeSegment) {
		u = addQuery(strings.Replace(u, takeSegment, batchSegment, 1), "batch_size", strconv.Itoa(n))
	}
	inProgress := "0"
	if busy {
		inProgress = "1"
	}
	return addQuery(u, "job_in_progress", inProgress)
}

// Stop is the URL of the stop channel, or empty where the take URL has no form to derive it from.
func (t Templates) Stop(worker string) string {
	u := forWorker(t.GetJob, worker)
	if !strings.Contains(u, takeSegment) {
		return ""
	}
	return strings.Replace(u, takeSegment, stopSegment, 1)
}

// Done is the URL for the result of a job and for its progress.
func (t Templates) Done(worker, job string, stream bool) string {
	return addQuery(forJob(t.PostOutput, worker, job), "isStream", strconv.FormatBool(stream))
}

// Stream is the URL for one chunk of a job, or empty where the platform takes none.
func (t Templates) Stream(worker, job string) string {
	if t.PostStream == "" {
		return ""
	}
	return addQuery(forJob(t.PostStream, worker, job), "isStream", "false")
}

// Heartbeat is the URL of a ping that names the given jobs, or empty where the platform takes none.
func (t Templates) Heartbeat(worker string, jobs []string) string {
	if t.Ping == "" {
		return ""
	}
	u := forWorker(t.Ping, worker)
	if ids := joinIDs(jobs); ids != "" {
		u = addQuery(u, "job_id", ids)
	}
	return addQuery(u, "runpod_version", SDKVersion)
}

// Unhealthy is the URL of the ping that reports a failed check, or empty where the platform takes none.
func (t Templates) Unhealthy(worker, check, reason string) string {
	if t.Ping == "" {
		return ""
	}
	u := addQuery(forWorker(t.Ping, worker), "status", "unhealthy")
	u = addQuery(u, "check", strings.ToValidUTF8(check, "\uFFFD"))
	u = addQuery(u, "reason", firstRunes(strings.ToValidUTF8(reason, "\uFFFD"), MaxReason))
	return addQuery(u, "runpod_version", SDKVersion)
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// joinIDs is the comma list of a ping, cut between two ids where it would grow too long.
func joinIDs(jobs []string) string {
	ids := strings.Join(jobs, ",")
	if len(ids) <= MaxPingIDs {
		return ids
	}
	cut := strings.LastIndexByte(ids[:MaxPingIDs+1], ',')
	return ids[:max(cut, 0)]
}

func forWorker(template, worker string) string {
	return expand(template, worker, worker)
}

func forJob(template, worker, job string) string {
	return expand(template, worker, job)
}

// expand runs for every call, which is why it does not build a strings.Replacer.
func expand(template, worker, id string) string {
	return strings.ReplaceAll(strings.ReplaceAll(template, "$RUNPOD_POD_ID", escape(worker)), "$ID", escape(id))
}

// escape makes an id safe as a path segment; ids of the hosted form come through unchanged.
func escape(id string) string { return url.PathEscape(id) }

// addQuery appends a parameter to a URL that may or may not have a query already. Some templates end in
// a bare "?", some in none at all.
func addQuery(u, name, value string) string {
	sep := "&"
	switch {
	case !strings.Contains(u, "?"):
		sep = "?"
	case strings.HasSuffix(u, "?"), strings.HasSuffix(u, "&"):
		sep = ""
	}
	return u + sep + name + "=" + strings.ReplaceAll(url.QueryEscape(value), "%2C", ",")
}
