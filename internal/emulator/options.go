package emulator

import (
	"cmp"
	"log/slog"
	"time"

	"runpodctl-worker/internal/emulator/fault"
	"runpodctl-worker/internal/emulator/store"
	"runpodctl-worker/internal/emulator/webhook"
	"runpodctl-worker/internal/protocol"
)

// Options of an Emulator. A field that is zero has the value of the hosted platform, or, where nobody
// knows that, the best guess.
type Options struct {
	Endpoints []string // their ids; the first also answers without /v2/{endpoint} ("local")
	APIKey    string   // what clients must send; empty: nothing
	WorkerKey string   // what workers must send (APIKey)
	Log       *slog.Logger
	Now       func() time.Time
	OpenStore func(endpoint string) (store.Store, error) // in memory

	// How long calls are held when there is nothing to answer.
	TakeHold   time.Duration // job-take (5s)
	StopHold   time.Duration // job-stop (25s)
	StreamHold time.Duration // stream without ?wait (9.5s)
	SyncHold   time.Duration // runsync and status-sync without ?wait (90s)
	OpenAIHold time.Duration // an OpenAI call, from one word of its job to the next (5m)
	MaxHold    time.Duration // upper bound of all these and of ?wait (none)
	MinWait    time.Duration // ?wait is raised to this (1s)
	MaxWait    time.Duration // ?wait is cut to this (5m)

	// What a worker may do with a job.
	Lease      time.Duration // silence about a job before it is redelivered (40s)
	MaxRetries int           // redeliveries before it fails (1); negative: none

	// What a job may ask for in its policy, and has otherwise.
	Execution    time.Duration // (10m)
	MinExecution time.Duration // (5s)
	TTL          time.Duration // (24h)
	MinTTL       time.Duration // (10s)
	MaxPolicy    time.Duration // upper bound of both (7 days)

	Retention     time.Duration // of a result (30m)
	SyncRetention time.Duration // of a result of runsync (1m)

	SweepEvery time.Duration // how often time limits are looked at (1s)
	WorkerSeen time.Duration // how long a silent worker counts in /health; more than TakeHold (30s)

	Webhooks webhook.Options // where they may go, and how patiently

	Hosts   []string // names in URLs that lead here, beside those of loopback; "*" or none: any
	Origins []string // of web pages that may call, beside those of the same host; "*": any

	RateLimits bool // answer 429 where the hosted platform would

	Faults fault.Plan // what goes wrong from the start

	JobLogs JobLogs // what jobs have printed, for whoever asks; nil: nobody keeps it

	// Bytes that are taken; more is answered 400.
	MaxRun     int64 // run (10 MiB)
	MaxRunSync int64 // runsync (20 MB)
	MaxResult  int64 // job-done (20 MB)
	MaxChunk   int64 // job-stream (1 MiB)

	// RetainBytes bounds what the results of each endpoint take up in memory; the oldest make room before
	// their retention is over (256 MiB). Negative: no bound.
	RetainBytes int64

	Disputed Disputed
}

func (o Options) withDefaults() Options {
	if len(o.Endpoints) == 0 {
		o.Endpoints = []string{"local"}
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Webhooks.Log = cmp.Or(o.Webhooks.Log, o.Log)
	o.WorkerKey = cmp.Or(o.WorkerKey, o.APIKey)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OpenStore == nil {
		now, retain := o.Now, max(cmp.Or(o.RetainBytes, 256<<20), 0)
		o.OpenStore = func(string) (store.Store, error) {
			memory := store.NewMemory(now)
			memory.RetainBytes = retain
			return memory, nil
		}
	}
	o.TakeHold = cmp.Or(o.TakeHold, 5*time.Second)
	o.StopHold = cmp.Or(o.StopHold, 25*time.Second)
	// Half a second less than hosted: the official Python client gives a read up after 10s.
	o.StreamHold = cmp.Or(o.StreamHold, 9500*time.Millisecond)
	o.SyncHold = cmp.Or(o.SyncHold, 90*time.Second)
	o.OpenAIHold = cmp.Or(o.OpenAIHold, 5*time.Minute)
	o.MinWait = cmp.Or(o.MinWait, time.Second)
	o.MaxWait = cmp.Or(o.MaxWait, 5*time.Minute)
	if o.MaxHold > 0 {
		for _, hold := range []*time.Duration{&o.TakeHold, &o.StopHold, &o.StreamHold, &o.SyncHold, &o.OpenAIHold, &o.MinWait, &o.MaxWait} {
			*hold = min(*hold, o.MaxHold)
		}
	}

	o.Lease = cmp.Or(o.Lease, 40*time.Second)
	o.MaxRetries = max(cmp.Or(o.MaxRetries, 1), 0)

	o.Execution = cmp.Or(o.Execution, 10*time.Minute)
	o.MinExecution = cmp.Or(o.MinExecution, 5*time.Second)
	o.TTL = cmp.Or(o.TTL, 24*time.Hour)
	o.MinTTL = cmp.Or(o.MinTTL, 10*time.Second)
	o.MaxPolicy = cmp.Or(o.MaxPolicy, 7*24*time.Hour)

	o.Retention = cmp.Or(o.Retention, 30*time.Minute)
	o.SyncRetention = cmp.Or(o.SyncRetention, time.Minute)

	o.MaxRun = cmp.Or(o.MaxRun, protocol.MaxRunBody)
	o.MaxRunSync = cmp.Or(o.MaxRunSync, protocol.MaxRunSyncBody)
	o.MaxResult = cmp.Or(o.MaxResult, protocol.MaxResult)
	o.MaxChunk = cmp.Or(o.MaxChunk, protocol.MaxChunk)

	o.SweepEvery = cmp.Or(o.SweepEvery, time.Second)
	o.WorkerSeen = cmp.Or(o.WorkerSeen, 30*time.Second)
	return o
}
