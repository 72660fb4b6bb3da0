package host

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// askLimit is how long a file system may take to answer a question of ours.
const askLimit = 2 * time.Second

var errSilent = fmt.Errorf("no answer within %s", askLimit)

// asker asks file systems, which may never answer: a call to a dead network mount blocks for ever, and nothing can end
// it. Such a call is left behind; while it lasts, nobody else asks for that path, so that there is one at most.
type asker struct {
	mu   sync.Mutex
	busy map[string]chan struct{} // by path: holds a token while somebody asks
}

// asking is the asker of the process: its paths are everybody's, and outlive a check.
var asking = &asker{busy: map[string]chan struct{}{}}

func (a *asker) place(path string) chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.busy[path] == nil {
		a.busy[path] = make(chan struct{}, 1)
	}
	return a.busy[path]
}

// ask is the answer of a call about a path, or an error when there is none in time.
func ask[T any](ctx context.Context, a *asker, path string, call func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	place, answers := a.place(path), make(chan answer, 1)
	select {
	case place <- struct{}{}:
		go func() {
			value, err := call()
			<-place
			answers <- answer{value, err}
		}()
	case <-ctx.Done():
	}
	select {
	case got := <-answers:
		return got.value, got.err
	case <-ctx.Done():
		var none T
		return none, errSilent
	}
}
