package fault

import (
	"encoding/json"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// Injector holds the rules in force.
type Injector struct {
	active atomic.Pointer[set] // nil while there are no rules
	change sync.Mutex          // of the pointer
	done   <-chan struct{}
}

// set is the rules from the first that is added to the next Clear.
type set struct {
	mu    sync.Mutex
	rules []*armed
	again map[string][]json.RawMessage // jobs to be handed out once more, by endpoint
}

// armed is a rule and what it has done.
type armed struct {
	Rule
	Seed    uint64 `json:"seed"`
	Matched int    `json:"matched"`
	Fired   int    `json:"fired"`
	chance  *rand.Rand
}

// New is an Injector without rules. Once done is closed, nothing is delayed any more.
func New(done <-chan struct{}) *Injector { return &Injector{done: done} }

// Add puts the rules of a plan into force, behind those there are.
func (i *Injector) Add(p Plan) {
	i.change.Lock()
	defer i.change.Unlock()
	s := i.active.Load()
	if s == nil {
		s = &set{again: map[string][]json.RawMessage{}}
	}
	seed := rand.Uint64N(1 << 53) // JSON readers that know only doubles must be able to repeat it
	if p.Seed != nil {
		seed = *p.Seed
	}
	s.mu.Lock()
	for n, rule := range p.Rules {
		// A chance of its own, so that no rule shifts the luck of another.
		s.rules = append(s.rules, &armed{Rule: rule, Seed: seed, chance: rand.New(rand.NewPCG(seed, uint64(n)))})
	}
	s.mu.Unlock()
	i.active.Store(s)
}

// Clear takes all rules away and returns their number.
func (i *Injector) Clear() int {
	i.change.Lock()
	defer i.change.Unlock()
	s := i.active.Swap(nil)
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rules)
}

// list is the rules in force, as JSON values.
func (i *Injector) list() []armed {
	list := []armed{}
	if s := i.active.Load(); s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, a := range s.rules {
			list = append(list, *a)
		}
	}
	return list
}

// pick is the first rule that is for this call and whose turn it is. Duplicates are a matter of
// jobs handed out, everything else of calls.
func (s *set) pick(c call, duplicate bool) *Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.rules {
		if a.Duplicate == duplicate && a.matches(c) && a.fires() {
			return &a.Rule
		}
	}
	return nil
}

func (r *Rule) matches(c call) bool {
	return c.route != "" && is(r.Route, c.route) && is(r.Worker, c.worker) && is(r.Job, c.job)
}

func is(want, have string) bool { return want == "" || want == have }

func (a *armed) fires() bool {
	if a.Times > 0 && a.Fired == a.Times {
		return false
	}
	a.Matched++
	if a.chance.Float64() >= a.Probability {
		return false
	}
	a.Fired++
	return true
}
