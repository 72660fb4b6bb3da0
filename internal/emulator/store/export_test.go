package store

// Waiting is how many wait for jobs to end.
func (m *Memory) Waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, r := range m.jobs {
		n += len(r.waiters)
	}
	return n
}
