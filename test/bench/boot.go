package main

// boot is what it costs a container to be started by the entrypoint: the official worker behind it, which has all checks
// of the machine before it, beside the same command alone, with no checks. The first take that the platform sees is what counts.
func (b *bench) boot() ([]comparison, error) {
	line := func(command string) comparison {
		return comparison{
			what: command + ": process start → first job-take", unit: "s", rival: "python worker.py alone", bound: atMost(0.15), judged: byExcess,
		}
	}
	gateway, shim := line("run --no-shim -- python worker.py"), line("run -- python worker.py")
	for range b.reps + 2 {
		for _, side := range []struct {
			start launch
			into  []*samples
		}{
			{b.behind("--no-shim"), []*samples{&gateway.ours}},
			{b.sdk, []*samples{&gateway.theirs, &shim.theirs}},
			{b.behind(), []*samples{&shim.ours}},
		} {
			took, err := b.firstTake(side.start)
			if err != nil {
				return nil, err
			}
			for _, into := range side.into {
				*into = append(*into, took)
			}
		}
	}
	return []comparison{gateway, shim}, nil
}
