package proc_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/proc"
	"runpodctl-worker/test/proctree"
)

func init() {
	platformModes["reap"] = reap
	platformModes["reap as init"] = func() {
		must(syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
		must(syscall.Mount("proc", "/proc", "proc", 0, ""))
		if os.Getpid() != 1 {
			panic("not the first process of its namespace")
		}
		reap()
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// reap is a container's first process, or a subreaper, whose program leaves twenty processes that it has forked twice.
func reap() {
	stop, err := proc.Adopt()
	must(err)
	defer stop()
	out := &buffer{}
	p, err := proc.Start(proc.Options{Stdout: out, Stderr: os.Stderr, Args: []string{
		"sh", "-c", `for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do (sleep 0.2 & echo $!); done; echo all left; exec sleep 300`,
	}})
	must(err)
	for !strings.Contains(out.String(), "all left") {
		time.Sleep(5 * time.Millisecond)
	}
	adopted := 0
	for _, pid := range pids(out.String()) {
		for listed(pid) {
			time.Sleep(5 * time.Millisecond)
		}
		adopted++
	}
	must(p.Stop(past()))
	fmt.Println("reaped", adopted, "zombies left", len(proctree.Descendants(os.Getpid())))
}

// listed tells whether a process is in the process table, even as a zombie.
func listed(pid int) bool {
	_, err := os.Stat("/proc/" + strconv.Itoa(pid))
	return err == nil
}

func pids(lines string) (pids []int) {
	for line := range strings.Lines(lines) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// SR-11
func TestAdopt_ReapsWhatTheProgramLeaves(t *testing.T) {
	self := func(mode string) *exec.Cmd {
		cmd := exec.CommandContext(within(t, time.Minute), os.Args[0])
		cmd.Env = append(os.Environ(), modeVariable+"="+mode, "GORACE=atexit_sleep_ms=0")
		return cmd
	}
	const want = "reaped 20 zombies left 0\n"
	t.Run("as a subreaper", func(t *testing.T) {
		out, err := self("reap").CombinedOutput()
		require.NoError(t, err, string(out))
		require.Equal(t, want, string(out))
	})
	t.Run("as the first process of a container", func(t *testing.T) {
		cmd := self("reap as init")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		if err != nil && (cmd.Process == nil || strings.Contains(string(out), "operation not permitted")) {
			t.Skipf("this machine forbids namespaces of processes (%v), so only the subreaper has been tested", err)
		}
		require.NoError(t, err, string(out))
		require.Equal(t, want, string(out))
	})
}

func TestAdopt_StealsNoExitStatus(t *testing.T) {
	stop, err := proc.Adopt()
	require.NoError(t, err)
	defer stop()
	const each = 200
	var (
		work    sync.WaitGroup
		codes   [each]int
		orphans [each]int
	)
	for i := range each {
		script := fmt.Sprintf("sleep 0.0%d; exit %d", i%7, i)
		work.Go(func() {
			if i%2 == 0 {
				codes[i] = -1
				if p, err := proc.Start(proc.Options{Args: []string{"sh", "-c", script}}); err == nil {
					<-p.Exited()
					codes[i] = p.State().Code
				}
				return
			}
			cmd := exec.Command("sh", "-c", script) // as a library might
			_ = cmd.Run()
			codes[i] = cmd.ProcessState.ExitCode()
		})
		work.Go(func() {
			out, _ := exec.Command("sh", "-c", fmt.Sprintf("(sleep 0.%d >/dev/null & echo $!)", i%9)).Output()
			orphans[i], _ = strconv.Atoi(strings.TrimSpace(string(out)))
		})
	}
	work.Wait()
	for i := range each {
		require.Equal(t, i, codes[i])
		require.NotZero(t, orphans[i])
	}
	require.Eventually(t, func() bool { return len(proctree.Descendants(os.Getpid())) == 0 }, time.Minute, 20*time.Millisecond,
		"every orphan has been reaped")
}
