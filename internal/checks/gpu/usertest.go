package gpu

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/lazy"
)

// userReport is what a gpu_test program of the user's own printed.
type userReport struct {
	listed int // of "Found N GPUs:"; below 0: it did not say
	passed int
	failed []string
	cuda   string
}

var (
	userFound   = lazy.Regexp(`^Found (\d{1,4}) GPUs?\b`)
	userVerdict = lazy.Regexp(`(?i)^GPU \d+\b.*\b(test passed|pass|passed|ok)\b\.?$`)
	userFailure = lazy.Regexp(`(?i)^(?:GPU \d+\b.*\b(fail|failed|failure)\b|(error|failed|cannot|unable)\b|\w+ failed\b)`)
	userCUDA    = lazy.Regexp(`^CUDA Driver Version:\s*(\S+)`)
)

// parseUserTest reads such an output line by line. Only a line that speaks a verdict counts: a name, or a counter that
// stands at 0, may contain any word.
func parseUserTest(text string) userReport {
	r := userReport{listed: -1}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := userFound().FindStringSubmatch(line); m != nil {
			r.listed, _ = strconv.Atoi(m[1]) // the pattern is a number
		}
		if m := userCUDA().FindStringSubmatch(line); m != nil {
			r.cuda = m[1]
		}
		switch {
		case userFailure().MatchString(line):
			r.failed = append(r.failed, line)
		case userVerdict().MatchString(line):
			r.passed++
		}
	}
	return r
}

// userTest runs the program that the user named instead of our own test.
func (d *Driver) userTest(ctx context.Context, path string) checks.Result {
	const remedy = "Run the program by hand to see more. Unset RUNPOD_BINARY_GPU_TEST_PATH for the built-in test."
	fail := func(status checks.Status, kind, format string, args ...any) checks.Result {
		return checks.Result{Status: status, Kind: kind, Summary: fmt.Sprintf(format, args...), Remedy: remedy}
	}
	if info, err := os.Stat(path); err != nil {
		return fail(checks.Error, "FileNotFoundError", "the GPU test %s is not there", path)
	} else if info.Mode()&0o111 == 0 || info.IsDir() {
		return fail(checks.Error, "PermissionError", "the GPU test %s is no program", path)
	}
	out, err := runTool(ctx, d.config.GPUTimeout.Value, d.environ, path)
	res := judgeUserTest(parseUserTest(out), err, d.config.GPUMaxErrors.Value)
	res.Output = strings.TrimSpace(out)
	if res.Status != checks.Pass {
		res.Remedy = remedy
	}
	return res
}

func judgeUserTest(r userReport, err error, most int) checks.Result {
	fail := func(kind, text string) checks.Result {
		return checks.Result{Status: checks.Fail, Kind: kind, Summary: text, Said: "GPU memory allocation test failed: " + text}
	}
	if late, ok := err.(silenceError); ok { //nolint:errorlint // runTool returns it as it is
		text := fmt.Sprintf("the GPU test did not end within %s", late.limit.Round(silenceRounding))
		return checks.Result{
			Status: checks.Fail, Kind: "TimeoutError", Summary: text,
			Said: fmt.Sprintf("GPU test binary timed out after %.0fs", late.limit.Seconds()),
		}
	}
	if len(r.failed) > 0 {
		var found []finding
		for _, line := range r.failed {
			found = append(found, finding{text: line})
		}
		return fail("", strings.Join(messages(found, most), "; "))
	}
	switch {
	case err != nil:
		return fail("", err.Error())
	case r.passed == 0:
		return fail("", "it says of no GPU that it passed")
	case r.listed >= 0 && r.passed < r.listed:
		return fail("", fmt.Sprintf("it found %s, and only %d passed", count(r.listed, "GPU", "GPUs"), r.passed))
	}
	return checks.Result{
		Summary: fmt.Sprintf("%s passed the test of your own", count(r.passed, "GPU", "GPUs")),
		Said:    passed(r.passed, r.cuda),
		Facts:   []checks.Fact{{Name: "gpus_passed", Value: r.passed}},
	}
}
