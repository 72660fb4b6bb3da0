package cli

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/protocol"
)

// serveWorkers runs the workers of all endpoints until the lifecycle ends, or one cannot be kept running.
func (s *session) serveWorkers(o serveOptions, base string, life lifecycle, log *slog.Logger) error {
	var (
		workers sync.WaitGroup
		mu      sync.Mutex
		errs    []error
	)
	life, endAll := life.branch()
	defer endAll()
	for _, endpoint := range o.endpoints {
		for range o.workers {
			host := s.localWorker(o, base, endpoint, log)
			workers.Go(func() {
				if err := guard(func() error { return host.keep(life) }); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
					endAll()
				}
			})
		}
	}
	workers.Wait()
	return workerExit(errors.Join(errs...))
}

// localWorker is a worker of the local Runpod, whose environment is the one that the platform would give it.
func (s *session) localWorker(o serveOptions, base, endpoint string, log *slog.Logger) *workerHost {
	env := platformEnv(workerURLs(base, endpoint), endpoint, cmp.Or(o.workerID, randomID()), o.emulator.WorkerKey)
	platform, err := config.WorkerFrom(config.Overlay(s.Lookup, env))
	if err != nil { // the flags were read with the same environment
		panic(err)
	}
	return &workerHost{
		options: o.worker, platform: platform,
		env:    slices.Concat(s.Environ(), env, []string{config.LogFormat + "=text"}),
		stdout: s.Stdout, stderr: s.Stderr, log: log, secrets: s.secrets, logs: o.logs,
		ready: func(ready protocol.Ready) {
			if len(ready.Checks) > 0 {
				log.Info(fmt.Sprintf("%d fitness check(s) registered; `run` and `doctor --handler` run them, `serve` does not: %s", len(ready.Checks), strings.Join(ready.Checks, ", ")))
			}
		},
	}
}

// randomID has the form of the platform's worker ids.
func randomID() string {
	const letters, length = "abcdefghijklmnopqrstuvwxyz0123456789", 14
	id := make([]byte, length)
	for i := range id {
		id[i] = letters[rand.IntN(len(letters))]
	}
	return string(id)
}
