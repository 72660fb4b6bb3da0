package gpu

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"runpodctl-worker/internal/checks/gpu/wire"
)

// What a report may hold at most. A healthy one has some dozens of short lines.
const (
	maxLine  = 1 << 20
	maxLines = 10_000
)

// reported is a line of a report, or why there are no more.
type reported struct {
	line wire.Line
	err  error
}

// read passes the lines of a report on until it ends, makes no sense, or nobody listens; then it closes out.
func read(report io.Reader, out chan<- reported, stop <-chan struct{}) {
	defer close(out)
	scanner := bufio.NewScanner(report)
	scanner.Buffer(nil, maxLine)
	for n := 0; scanner.Scan(); n++ {
		line, err := parseLine(scanner.Bytes())
		if n == maxLines {
			err = fmt.Errorf("more than %d lines", maxLines)
		}
		select {
		case out <- reported{line, err}:
		case <-stop:
			return
		}
		if err != nil {
			return
		}
	}
	if err := scanner.Err(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, os.ErrClosed) {
		select {
		case out <- reported{err: err}:
		case <-stop:
		}
	}
}

func parseLine(text []byte) (wire.Line, error) {
	line := wire.Line{GPU: wire.NoGPU}
	if err := json.Unmarshal(text, &line); err != nil {
		return line, fmt.Errorf("a line that is no report: %w", err)
	}
	switch line.State {
	case wire.StateBegin, wire.StateOK, wire.StateFail, wire.StateSkip, wire.StateEnd:
		return line, nil
	}
	return line, fmt.Errorf("a line with the state %q", line.State)
}

// find is the first finished step of a kind.
func find(lines []wire.Line, step wire.Step) (wire.Line, bool) {
	for _, line := range lines {
		if line.Step == step {
			return line, true
		}
	}
	return wire.Line{}, false
}

// failedLine is the first step that failed.
func failedLine(lines []wire.Line) (wire.Line, bool) {
	for _, line := range lines {
		if line.State == wire.StateFail {
			return line, true
		}
	}
	return wire.Line{}, false
}

// data reads what a step brought. Nothing is a value too: a step that failed or was skipped may bring none.
func data[T any](lines []wire.Line, step wire.Step) (value T, found bool) {
	line, ok := find(lines, step)
	if !ok || len(line.Data) == 0 {
		return value, false
	}
	return value, json.Unmarshal(line.Data, &value) == nil
}
