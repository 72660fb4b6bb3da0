package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"time"

	"runpodctl-worker/test/proctree"
)

// patience is how long anything may take to get ready.
const patience = time.Minute

// process is one of the programs that are compared. Its output goes to a file, as a container's does.
type process struct {
	cmd *exec.Cmd
	log *os.File
}

func (b *bench) start(env []string, args ...string) (*process, error) {
	log, err := os.CreateTemp(b.dir, "log-")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir, "LC_ALL=C.UTF-8"}, env...)
	cmd.Dir = b.dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{cmd: cmd, log: log}, nil
}

// stop kills the process and all below it.
func (p *process) stop() {
	if p.cmd.ProcessState == nil { // it runs, or nobody has waited for it
		proctree.Kill(p.cmd.Process.Pid)
		_ = p.cmd.Wait() // killed, so it is no success
	}
	_ = p.log.Close()
}

func (p *process) output() ([]byte, error) { return os.ReadFile(p.log.Name()) }

func (p *process) tail() string {
	raw, err := p.output()
	if err != nil {
		return err.Error()
	}
	return string(raw[max(0, len(raw)-1000):])
}

// await waits until something is ready.
func (p *process) await(ready <-chan struct{}) error {
	select {
	case <-ready:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("%s is not ready after %s: %s", p.cmd.Path, patience, p.tail())
	}
}

var address = regexp.MustCompile(`http://(?:127\.0\.0\.1|localhost):(\d+)`)

// url waits until the log says where the process listens.
func (p *process) url() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for ctx.Err() == nil {
		raw, err := p.output()
		if err != nil {
			return "", err
		}
		if found := address.FindSubmatch(raw); found != nil {
			return "http://127.0.0.1:" + string(found[1]), nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return "", fmt.Errorf("%s does not say where it listens: %s", p.cmd.Path, p.tail())
}
