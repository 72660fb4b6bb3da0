// Package child runs a program that is measured or tried. Its output goes to a file, as a container's does.
package child

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"time"

	"runpodctl-worker/test/proctree"
)

// Patience is how long anything may take to get ready, or to end.
const Patience = time.Minute

// Process is such a program, once it has started.
type Process struct {
	Cmd  *exec.Cmd
	Log  *os.File
	gone chan struct{}
}

// Start starts a program in a directory, which is its home too.
func Start(dir string, env []string, args ...string) (*Process, error) {
	log, err := os.CreateTemp(dir, "log-")
	if err != nil {
		return nil, err
	}
	p := &Process{Cmd: exec.Command(args[0], args[1:]...), Log: log, gone: make(chan struct{})}
	p.Cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C.UTF-8"}, env...)
	p.Cmd.Dir = dir
	p.Cmd.Stdout, p.Cmd.Stderr = log, log
	p.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.Cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.gone)
		_ = p.Cmd.Wait() // how it ended is in its state
	}()
	return p, nil
}

// Pid is its number.
func (p *Process) Pid() int { return p.Cmd.Process.Pid }

// Gone is closed when the process has ended; Cmd.ProcessState says how.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Alive returns an error once the process has ended.
func (p *Process) Alive() error {
	select {
	case <-p.gone:
		return fmt.Errorf("%s has ended: %s", p.Cmd, p.Tail())
	default:
		return nil
	}
}

// Term asks the process to end, as a platform does, and returns its exit code.
func (p *Process) Term() (int, error) {
	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, fmt.Errorf("%s has ended already: %w: %s", p.Cmd.Path, err, p.Tail())
	}
	select {
	case <-p.gone:
		return p.Cmd.ProcessState.ExitCode(), nil
	case <-time.After(Patience):
		return 0, fmt.Errorf("%s runs on %s after SIGTERM: %s", p.Cmd.Path, Patience, p.Tail())
	}
}

// Stop kills the process and all below it.
func (p *Process) Stop() {
	if p.Alive() == nil {
		proctree.Kill(p.Pid())
		<-p.gone
	}
	_ = p.Log.Close()
}

// Output is what it has printed so far.
func (p *Process) Output() ([]byte, error) { return os.ReadFile(p.Log.Name()) }

// Tail is the end of its output.
func (p *Process) Tail() string {
	raw, err := p.Output()
	if err != nil {
		return err.Error()
	}
	return string(raw[max(0, len(raw)-1000):])
}

// Await waits until something is ready.
func (p *Process) Await(ready <-chan struct{}) error {
	select {
	case <-ready:
		return nil
	case <-time.After(Patience):
		return fmt.Errorf("%s is not ready after %s: %s", p.Cmd.Path, Patience, p.Tail())
	}
}

var address = regexp.MustCompile(`http://(?:127\.0\.0\.1|localhost):(\d+)`)

// URL waits until the output says where the process listens.
func (p *Process) URL() (string, error) {
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		raw, err := p.Output()
		if err != nil {
			return "", err
		}
		if found := address.FindSubmatch(raw); found != nil {
			return "http://127.0.0.1:" + string(found[1]), nil
		}
	}
	return "", fmt.Errorf("%s does not say where it listens: %s", p.Cmd.Path, p.Tail())
}
