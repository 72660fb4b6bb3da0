package main

import (
	"os"

	"runpodctl-worker/test/child"
)

// start starts one of the programs that are compared.
func (b *bench) start(env []string, args ...string) (*child.Process, error) {
	state, err := os.MkdirTemp(b.dir, "state-") // what one worker is killed with is no business of the next
	if err != nil {
		return nil, err
	}
	return child.Start(b.dir, append([]string{"XDG_STATE_HOME=" + state}, env...), args...)
}
