package proc

import (
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// orphanGrace is how long an orphan that has ended stays unreaped. A child that a library started, of which
// Start knows nothing, has been waited for by then.
const orphanGrace = time.Second

// Adopt makes this process the parent of every descendant whose own parent ends, as the first process of a
// container is anyhow, and reaps such orphans when they end. A Stop then also finds what a program left behind
// without a trace in its environment. It is in force until stop is called, which ends the reaping.
//
// Programs have to be started by Start while it is in force: the exit status of a child that is started in another
// way, and is not waited for at once, gets lost.
func Adopt() (stop func(), err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return func() {}, fmt.Errorf("become the parent of orphaned processes: %w", err)
	}
	programs.adopt(true)
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	over := make(chan struct{})
	var reaper sync.WaitGroup
	reaper.Go(func() { reapOrphans(ended, over) })
	return sync.OnceFunc(func() {
		signal.Stop(ended)
		close(over)
		reaper.Wait()
		programs.adopt(false)
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) // it worked with a 1
	}), nil
}

// reapOrphans reaps orphans for as long as over is open. It looks for them some time after a child has ended, and
// then until there are none: what it finds may have come in the place of another.
func reapOrphans(ended <-chan os.Signal, over <-chan struct{}) {
	look := time.After(orphanGrace) // at those that were there before
	seen := map[identity]bool{}
	for {
		select {
		case <-over:
			return
		case <-ended:
			if look == nil {
				look = time.After(orphanGrace)
			}
		case <-look:
			look = nil
			if seen = reapSeen(seen); len(seen) > 0 {
				look = time.After(orphanGrace)
			}
		}
	}
}

// reapSeen reaps the orphans that the look before has seen, and returns those that are new or still there.
func reapSeen(before map[identity]bool) (left map[identity]bool) {
	left = map[identity]bool{}
	for _, e := range processes() {
		if !e.ended || e.parent != os.Getpid() || programs.owns(e.pid) {
			continue
		}
		if !before[e.identity] || !programs.reapOrphan(e.pid) {
			left[e.identity] = true
		}
	}
	return left
}
