package program

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
)

// Concurrency asks the program's concurrency_modifier for the wanted number of parallel jobs. A program behind the
// gateway has said it with its calls for jobs.
func (p *Program) Concurrency(ctx context.Context, current int) (int, error) {
	if p.servedByGateway() {
		return p.gateway.Limit(), nil
	}
	var answer struct{ Value, Error string }
	if err := p.ask(ctx, kindModifier, strconv.Itoa(current), &answer); err != nil {
		return 0, fmt.Errorf("concurrency_modifier: %w", err)
	}
	if answer.Error != "" {
		return 0, fmt.Errorf("concurrency_modifier raised %s", answer.Error)
	}
	n, err := wholeNumber(answer.Value)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("concurrency_modifier returned %.100s: want a whole number, at least 1", answer.Value)
	}
	return n, nil
}

// wholeNumber also takes 4.0 and 1e3: they are numbers of the same worth in Python.
func wholeNumber(text string) (int, error) {
	if n, err := strconv.Atoi(text); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != float64(int32(f)) {
		return 0, fmt.Errorf("not a whole number: %s", text)
	}
	return int(f), nil
}

// CheckError is the failure of a fitness check of the program's.
type CheckError struct {
	Type    string // of the exception
	Message string
}

func (e *CheckError) Error() string { return e.Type + ": " + e.Message }

// Check runs the fitness check with an index into Ready.Checks. It must not overlap with jobs of a
// sync handler, whose thread it needs. A check that failed is a *CheckError.
func (p *Program) Check(ctx context.Context, index int) error {
	var answer CheckError
	if err := p.ask(ctx, kindCheck, strconv.Itoa(index), &answer); err != nil {
		return err
	}
	if answer != (CheckError{}) {
		return &answer
	}
	return nil
}

// ask sends a request and waits for its reply.
func (p *Program) ask(ctx context.Context, k kind, payload string, answer any) error {
	reply := make(chan []byte, 1)
	p.mu.Lock()
	to := p.control
	if k == kindCheck {
		to = p.data // the thread that runs the handler reads this one
	}
	if to == nil {
		p.mu.Unlock()
		return fmt.Errorf("the program has not been started")
	}
	p.last++
	number := p.last
	p.asks[number] = reply
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.asks, number)
		p.mu.Unlock()
	}()

	if err := to.send(k, number, []byte(payload)); err != nil {
		p.gone() // how it ended will be the error
	}
	select {
	case b := <-reply:
		return json.Unmarshal(b, answer)
	case <-p.exited:
		return p.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *Program) answer(f frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if reply := p.asks[f.number]; reply != nil {
		delete(p.asks, f.number)
		reply <- f.payload
	}
}
