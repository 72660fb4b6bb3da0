package cli

import "runtime/debug"

const gcPercent = 400

// Where the collector stops being lazy.
const (
	queueMemory  = 1 << 30   // a queue holds the payloads of all its jobs
	workerMemory = 256 << 20 // beside a worker the model needs the memory
)

// relaxGC trades memory for speed: what is held is marked again at every collection, although most of what is
// allocated meanwhile is short-lived. Near the limit the collector works as hard as ever, and above it harder: large
// payloads cost it little, since there are no pointers in them. GOGC and GOMEMLIMIT have the last word.
func (s *session) relaxGC(limit int64) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		if _, set := s.Lookup(name); set {
			return
		}
	}
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(limit)
}
