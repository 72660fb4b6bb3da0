package worker

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
)

// The counters follow the tasks, whatever happens to these in whatever order.
func TestLedger_CountsMatchTheTasks(t *testing.T) {
	l := newLedger(4)
	var running, back []*task
	pick := func(tasks []*task) int { return rand.N(len(tasks)) }
	for i := range 10_000 {
		switch op := rand.N(4); {
		case op == 0 && len(running) < 8:
			task := &task{job: protocol.Job{ID: fmt.Sprint(i)}}
			require.Nil(t, l.add(task))
			require.Same(t, task, l.add(task))
			running = append(running, task)
		case op == 1 && len(running) > 0:
			n := pick(running)
			l.back(running[n])
			back = append(back, running[n])
			running = append(running[:n], running[n+1:]...)
		case op == 2 && len(back) > 0:
			n := pick(back)
			l.settle(back[n])
			back = append(back[:n], back[n+1:]...)
		case op == 3 && len(back)+len(running) > 0:
			all := append(append([]*task{}, running...), back...)
			l.setFailing(all[pick(all)], rand.N(2) == 0)
		}
		failing := 0
		for _, task := range back {
			if task.failing {
				failing++
			}
		}
		require.Equal(t, len(running), l.running)
		require.Equal(t, failing, l.failing)
		require.Len(t, l.tasks, len(running)+len(back))
	}
}
