package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"runpodctl-worker/test/proctree"

	"runpodctl-worker/test/child"
)

const (
	killRetries = "1000"          // each kill costs the jobs that run one, and some are unlucky
	longestLife = 2 * time.Second // of a worker between its start and its kill
	jobsPerLife = 10
	slots       = 16
)

// victims are the ways to kill, and how often each is chosen.
var victims = []struct {
	name   string
	weight int
	spares bool // the worker
	kill   func(worker *child.Process)
}{
	{"the worker alone", 4, false, func(p *child.Process) { _ = p.Cmd.Process.Kill() }},
	{"its process group", 2, false, func(p *child.Process) { _ = syscall.Kill(-p.Pid(), syscall.SIGKILL) }},
	{"the worker and all below it", 2, false, func(p *child.Process) { proctree.Kill(p.Pid()) }},
	{"its program alone", 2, true, func(p *child.Process) {
		for _, pid := range proctree.Descendants(p.Pid()) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}},
}

// killing is the trial of a worker that is killed again and again. It is begun anew each time, with the same directory for
// its state, while jobs keep coming.
type killing struct {
	options
	dir      string
	random   *rand.Rand
	platform *platform
	news     *news
	worker   *child.Process
	jobs     []job
	killed   []int // by victim
}

func kills(o options, dir string) error {
	o.concurrency = min(o.concurrency, slots)
	k := &killing{options: o, dir: dir, random: rand.New(rand.NewPCG(o.seed, 0)), killed: make([]int, len(victims))}
	var err error
	if k.platform, err = startPlatform(o, dir, killRetries); err != nil {
		return err
	}
	defer k.platform.Stop()
	if k.news, err = listen(); err != nil {
		return err
	}
	defer k.news.close()
	defer func() {
		if k.worker != nil {
			k.worker.Stop()
		}
	}()
	began := time.Now()
	for range k.kills {
		if err := k.live(); err != nil {
			return err
		}
	}
	if err := k.submit(1); err != nil { // its end shows that the last worker is there
		return err
	}
	if err := k.platform.awaitEnds(o, len(k.jobs), k.ensureWorker); err != nil {
		return err
	}
	took := time.Since(began)
	code, err := k.worker.Term()
	if err != nil {
		return err
	}
	if err := k.countRuns(); err != nil {
		return err
	}
	r, err := k.platform.examine(k.jobs, k.news)
	if err != nil {
		return err
	}
	r.exit, r.took = code, took
	left, err := k.leftovers()
	if err != nil {
		return err
	}
	fmt.Fprintln(o.out, "\n## The worker is killed")
	r.write(o.out)
	for i, v := range victims {
		row(o.out, "killed: "+v.name, k.killed[i])
	}
	left.write(o.out)
	r.wrong = append(r.wrong, left.wrong()...)
	return r.verdict()
}

// live is one life: more jobs come, and at some moment the kill.
func (k *killing) live() error {
	if err := k.ensureWorker(); err != nil {
		return err
	}
	if err := k.submit(jobsPerLife); err != nil {
		return err
	}
	time.Sleep(time.Duration(k.random.Int64N(int64(longestLife))))
	k.kill()
	return nil
}

func (k *killing) submit(n int) error {
	todo := make([]work, n)
	for i := range todo {
		todo[i] = anyWork(len(k.jobs)+i, k.random)
	}
	jobs, err := k.platform.submit(todo, k.news.url)
	k.jobs = append(k.jobs, jobs...)
	return err
}

func (k *killing) kill() {
	sum := 0
	for _, v := range victims {
		sum += v.weight
	}
	chosen := k.random.IntN(sum)
	for i, v := range victims {
		if chosen -= v.weight; chosen < 0 {
			k.killed[i]++
			v.kill(k.worker)
			if !v.spares {
				<-k.worker.Gone()
			}
			return
		}
	}
}

// ensureWorker starts the worker where it was killed, or has ended since its program was.
func (k *killing) ensureWorker() error {
	if k.worker != nil && k.worker.Alive() == nil {
		return nil
	}
	worker, err := k.platform.startWorker(k.options, k.dir)
	k.worker = worker
	return err
}

// countRuns reads how often each job was begun.
func (k *killing) countRuns() error {
	raw, err := os.ReadFile(filepath.Join(k.dir, runsName))
	if err != nil {
		return err
	}
	for line := range bytes.Lines(raw) {
		n, err := strconv.Atoi(string(bytes.TrimSpace(line)))
		if err != nil {
			return err
		}
		k.jobs[n].runs++
	}
	return nil
}
