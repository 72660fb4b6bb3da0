package declared

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/proc"
)

const (
	// keptOutput is how much of a command's output is kept: its end, which says why it failed.
	keptOutput = 8 << 10
	// markName is a variable by which a command's descendants are found, also those that left its process group.
	markName = "RUNPODCTL_WORKER_CHECK"
	// shownLine is how much of its last line goes into the summary.
	shownLine = 200
)

// command is a program that must end with exit code 0.
type command []string

// UnmarshalYAML implements yaml.Unmarshaler. A text is for the shell, a list is run as it is.
func (c *command) UnmarshalYAML(node *yaml.Node) (err error) {
	if node.Kind == yaml.ScalarNode {
		if strings.TrimSpace(node.Value) == "" {
			return at(node, "exec: there is no command")
		}
		*c = command{"sh", "-c", node.Value}
		return nil
	}
	*c, err = listOf(node, func(n *yaml.Node) (word string, err error) { return word, n.Decode(&word) })
	if err == nil && (*c)[0] == "" {
		return at(node, "exec: there is no command")
	}
	return err
}

func (c command) run(ctx context.Context, _ Deps) checks.Result {
	var out, errs tail
	mark := markName + "=" + rand.Text()
	p, err := proc.Start(proc.Options{
		Args: c, Env: append(os.Environ(), mark), Mark: mark, Stdout: &out, Stderr: io.MultiWriter(&errs, &out),
	})
	if err != nil {
		return c.failed(err.Error(), "")
	}
	if err := p.Finish(ctx); err != nil {
		return c.failed(err.Error(), out.String())
	}
	if p.State() != (proc.State{}) {
		return c.failed(p.State().String()+lastLine(&errs, &out), out.String())
	}
	return checks.Result{Summary: "exit code 0" + lastLine(&errs, &out), Output: out.String()}
}

func (c command) failed(problem, output string) checks.Result {
	res := failed([]string{strings.ReplaceAll(problem, "\n", "; ")}, "Run the command by hand in the container; its output may say more.", "")
	res.Output = output
	return res
}

// lastLine is ": " and the last line of the first stream that has one. The streams come by two pipes, so that their
// common order is not to be trusted.
func lastLine(streams ...*tail) string {
	for _, t := range streams {
		text := strings.TrimSpace(t.String())
		line := text[strings.LastIndexAny(text, "\r\n")+1:]
		if runes := []rune(line); len(runes) > shownLine {
			line = string(proc.WithoutTornWord([]byte(string(runes[:shownLine])))) + "…"
		}
		if line != "" {
			return ": " + line
		}
	}
	return ""
}

// tail keeps the end of what is written, also by two streams.
type tail struct {
	mu      sync.Mutex
	kept    []byte
	dropped int
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - keptOutput; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
		t.dropped += over
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.ToValidUTF8(string(t.kept), "�")
	if t.dropped == 0 {
		return text
	}
	torn := strings.IndexAny(text, " \t\r\n") + 1 // a word that nobody would know for a secret
	return fmt.Sprintf("(%d bytes before)\n%s", t.dropped+torn, text[torn:])
}
