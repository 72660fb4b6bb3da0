package worker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
)

// The counters follow the tasks, whatever happens to these in whatever order.
func TestLedger_CountsMatchTheTasks(t *testing.T) {
	l := newLedger(4)
	var all []*task // those that are in the program, or not settled
	settled := map[*task]bool{}
	done := func(t *task) bool { return t.back && settled[t] }
	for i := range 10_000 {
		if rand.N(4) == 0 && len(all) < 16 {
			task := &task{job: protocol.Job{ID: fmt.Sprint(i)}}
			require.Nil(t, l.add(task))
			require.Same(t, task, l.add(task))
			all = append(all, task)
		}
		if len(all) == 0 {
			continue
		}
		task := all[rand.N(len(all))]
		switch op := rand.N(3); {
		case op == 0 && !task.back:
			l.back(task)
		case op == 1 && !settled[task]:
			l.settle(task)
			settled[task] = true
		case op == 2:
			l.setFailing(task, rand.N(2) == 0)
		}
		var running, unsent, failing, held int
		for _, task := range all {
			running += count(!task.back)
			held += count(!settled[task])
			unsent += count(task.back && !settled[task])
			failing += count(task.back && !settled[task] && task.failing)
		}
		require.Equal(t, running, l.running)
		require.Equal(t, unsent, l.unsent)
		require.Equal(t, failing, l.failing)
		require.Len(t, l.tasks, held)
		all = slices.DeleteFunc(all, done)
	}
}
