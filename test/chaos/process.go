package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"time"

	"runpodctl-worker/test/proctree"
)

// process is one of the two programs. Its output goes to a file, as a container's does.
type process struct {
	cmd  *exec.Cmd
	log  *os.File
	gone chan struct{}
}

func start(dir string, env []string, args ...string) (*process, error) {
	log, err := os.CreateTemp(dir, "log-")
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(args[0], args[1:]...), log: log, gone: make(chan struct{})}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C.UTF-8"}, env...)
	p.cmd.Dir = dir
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.gone)
		_ = p.cmd.Wait() // how it ended is in its state
	}()
	return p, nil
}

// alive returns an error once the process has ended.
func (p *process) alive() error {
	select {
	case <-p.gone:
		return fmt.Errorf("%s has ended: %s", p.cmd, p.tail())
	default:
		return nil
	}
}

// stop kills the process and all below it.
func (p *process) stop() {
	proctree.Kill(p.cmd.Process.Pid)
	<-p.gone
	_ = p.log.Close()
}

func (p *process) tail() string {
	raw, err := os.ReadFile(p.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(raw[max(0, len(raw)-1000):])
}

var address = regexp.MustCompile(`http://(?:127\.0\.0\.1|localhost):(\d+)`)

// url waits until the log says where the process listens.
func (p *process) url() (string, error) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		raw, err := os.ReadFile(p.log.Name())
		if err != nil {
			return "", err
		}
		if found := address.FindSubmatch(raw); found != nil {
			return "http://127.0.0.1:" + string(found[1]), nil
		}
	}
	return "", fmt.Errorf("it does not say where it listens: %s", p.tail())
}
