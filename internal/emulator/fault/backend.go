package fault

import (
	"context"
	"encoding/json"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/server"
)

// Backend is the backend of an endpoint that hands some jobs out twice, as the rules say.
func (i *Injector) Backend(endpoint string, b server.Backend) server.Backend {
	return &repeater{Backend: b, faults: i, endpoint: endpoint}
}

type repeater struct {
	server.Backend
	faults   *Injector
	endpoint string
}

// Take implements server.Backend.
func (p *repeater) Take(ctx context.Context, worker string, n int) ([]json.RawMessage, error) {
	s := p.faults.active.Load()
	if s == nil {
		return p.Backend.Take(ctx, worker, n)
	}
	if again := s.repeated(p.endpoint, n); len(again) > 0 {
		return again, nil
	}
	objects, err := p.Backend.Take(ctx, worker, n)
	for _, object := range objects {
		if job, err := protocol.ParseJob(object); err == nil && s.pick(call{takeRoute, worker, job.ID}, true) != nil {
			s.repeat(p.endpoint, object)
		}
	}
	return objects, err
}

func (s *set) repeat(endpoint string, object json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again[endpoint] = append(s.again[endpoint], object)
}

func (s *set) repeated(endpoint string, n int) []json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.again[endpoint]
	n = min(n, len(list))
	s.again[endpoint] = list[n:]
	return list[:n:n]
}
