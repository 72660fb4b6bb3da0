package worker

// launch runs a job in a goroutine that has run one before, if there is an idle one. Its stack has its size already, and a
// new one would be copied again and again on the way down to the network: a twentieth of what a short job costs.
func (w *Worker) launch(t *task) {
	select {
	case w.next <- t:
	default:
		w.task(func() { w.runEach(t) })
	}
}

// runEach runs one job after the other until no more are taken.
func (w *Worker) runEach(t *task) {
	for {
		t.run()
		select {
		case t = <-w.next:
		case <-w.fetching.Done():
			return
		}
	}
}
