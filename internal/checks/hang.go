package checks

import "slices"

// left is a check that was left behind when it did not come back in time.
type left struct {
	check    Check
	returned <-chan struct{} // closed when it came back after all
}

func (r *Runner) leave(s Step, returned <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hanging = append(r.hanging, left{s.Check, returned})
}

// hangs finds what forbids a step to start: an earlier run of its check, in whatever phase, or of another one of its
// lane, that was left behind and has not come back.
func (r *Runner) hangs(s Step) (left, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hanging = slices.DeleteFunc(r.hanging, func(l left) bool {
		select {
		case <-l.returned:
			return true
		default:
			return false
		}
	})
	for _, l := range r.hanging {
		if l.check.ID == s.ID || s.Lane != "" && l.check.Lane == s.Lane {
			return l, true
		}
	}
	return left{}, false
}
