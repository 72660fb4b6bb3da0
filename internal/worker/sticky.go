package worker

import (
	"encoding/json"
	"strings"

	"runpodctl-worker/internal/lazy"
	"runpodctl-worker/internal/protocol"
)

// A process whose GPU has failed in one of these ways gets the same error from every call, until it is started again.
// Errors that a process survives are not among them: out of memory above all.
var (
	stickyWords = `device-side assert triggered|an illegal memory access was encountered|unspecified launch failure|` +
		`uncorrectable ECC error encountered|misaligned address|an illegal instruction was encountered|invalid program counter|` +
		`hardware stack error|operation not supported on global/shared address space|the launch timed out and was terminated`
	stickyNames = `cudaError(?:Assert|IllegalAddress|LaunchFailure|ECCUncorrectable|MisalignedAddress|IllegalInstruction|InvalidPc|` +
		`HardwareStackError|InvalidAddressSpace|LaunchTimeout)|` +
		`CUDA_ERROR_(?:ASSERT|ILLEGAL_ADDRESS|LAUNCH_FAILED|ECC_UNCORRECTABLE|MISALIGNED_ADDRESS|ILLEGAL_INSTRUCTION|INVALID_PC|` +
		`HARDWARE_STACK_ERROR|INVALID_ADDRESS_SPACE|LAUNCH_TIMEOUT)`
	// Who says so: PyTorch, onnxruntime, Triton, TensorRT, the driver's own calls.
	stickySpeakers = `CUDA error|CUDA failure \d+|Triton Error \[CUDA\]|Cuda Runtime|\bcu[A-Z]\w+ failed`

	stickyError = lazy.Regexp(`\b(?:` + stickyNames + `)\b|(?:` + stickySpeakers + `)\s?[:(] ?(` + stickyWords + `)`)
)

// How much of an error is read, and how often a line of it is looked at again.
const (
	maxExamined = 64 << 10
	maxMentions = 16
)

// sticky finds, in the error of a job, the words for a GPU that its program cannot use any more. Empty: there are none.
//
// Only errors are looked at, since outputs and logs may hold what clients have written. Where an error quotes that, it
// does not count either.
func sticky(failure string) string {
	if failure == "" {
		return ""
	}
	var info protocol.ErrorInfo
	if json.Unmarshal([]byte(failure), &info) == nil && info.Type != "" {
		trace := raised(info.Traceback)
		failure = info.Type + ": " + head(info.Message) + "\n" + trace[max(0, len(trace)-maxExamined):]
	} else {
		failure = head(failure)
	}
	for line := range strings.Lines(failure) {
		for _, at := range stickyError().FindAllStringSubmatchIndex(line, maxMentions) {
			if quoted(line[:at[0]]) {
				continue
			}
			if at[2] >= 0 {
				return line[at[2]:at[3]]
			}
			return line[at[0]:at[1]]
		}
	}
	return ""
}

func head(text string) string { return text[:min(len(text), maxExamined)] }

// raised is a Python traceback without the lines of source in it, which name what a program looks for, not what it met.
func raised(traceback string) string {
	var lines strings.Builder
	for line := range strings.Lines(traceback) {
		if !strings.HasPrefix(line, " ") {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

// quoted tells whether a text ends within quotation marks. An apostrophe inside a word is none.
func quoted(before string) bool {
	open := rune(0)
	last := ' '
	for _, r := range before {
		switch {
		case r == open:
			open = 0
		case open == 0 && (r == '"' || r == '`' || r == '\'' && !isLetter(last)):
			open = r
		}
		last = r
	}
	return open != 0
}

func isLetter(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }
