package ready

import (
	"context"
	"errors"

	"runpodctl-worker/internal/proc"
)

// command is ready when the shell ends with exit code 0.
type command string

func (c command) String() string { return "exec:" + string(c) }

// Check leaves nothing of the command behind.
func (c command) Check(ctx context.Context) error {
	p, err := proc.Start(proc.Options{Args: []string{"sh", "-c", string(c)}})
	if err != nil {
		return err
	}
	if err := p.Finish(ctx); err != nil {
		return err
	}
	if state := p.State(); state != (proc.State{}) {
		return failure(state, p.Tail())
	}
	return nil
}

// failure is how the command ended, with the last thing that it said.
func failure(state proc.State, tail []string) error {
	text := state.String()
	if len(tail) > 0 {
		text += ": " + tail[len(tail)-1]
	}
	return errors.New(text)
}
