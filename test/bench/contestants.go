package main

import (
	"fmt"
	"path/filepath"

	"runpodctl-worker/test/child"
)

// The handler files are shared with the tests, and both sides run the same ones.
func handler(name string) string {
	path, err := filepath.Abs(filepath.Join("test", "handlers", name))
	if err != nil {
		panic(err) // there is no working directory
	}
	return path
}

// ours starts the worker with a handler file.
func (b *bench) ours(r *referee, file string, concurrency int) (*child.Process, error) {
	return b.start(r.env(), b.bin, "run", "--python", b.python, "--handler", handler(file),
		"--concurrency", fmt.Sprint(concurrency))
}

// sdk starts the official worker with the same file.
func (b *bench) sdk(r *referee, file string, concurrency int) (*child.Process, error) {
	env := r.env()
	if concurrency > 1 {
		env = append(env, fmt.Sprint("NOOP_CONCURRENCY=", concurrency))
	}
	return b.start(env, b.python, "-u", handler(file))
}

// behind starts the official worker behind ours, which checks the machine first.
func (b *bench) behind(flags ...string) launch {
	return func(r *referee, file string, _ int) (*child.Process, error) {
		args := append([]string{b.bin, "run"}, flags...)
		return b.start(r.checked(), append(args, "--", b.python, "-u", handler(file))...)
	}
}

// launch starts one of the contestants for a referee.
type launch func(r *referee, file string, concurrency int) (*child.Process, error)

// bare is the loop without a handler, whatever the file.
func (b *bench) bare(r *referee, _ string, concurrency int) (*child.Process, error) {
	return b.runBareLoop(r, concurrency)
}

// with runs a contestant for a referee, waits until it takes its first job, and hands both to use.
func (b *bench) with(r *referee, start launch, file string, concurrency int, use func(*child.Process) error) error {
	defer r.close()
	p, err := start(r, file, concurrency)
	if err != nil {
		return err
	}
	defer p.Stop()
	if err := p.Await(r.first); err != nil {
		return err
	}
	return use(p)
}
