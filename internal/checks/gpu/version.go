package gpu

import (
	"context"
	"fmt"
	"strings"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/require"
)

const versionID = "cuda_version"

// Version is the check of the driver's CUDA version against the minimum, the image's toolkit and what the image asks for.
func (d *Driver) Version() checks.Check {
	return d.check(checks.Check{
		ID: versionID, Name: "_cuda_version_check", Title: "CUDA version", Phase: checks.Early,
	}, func(ctx context.Context, _ *pass, s *survey) checks.Result {
		if err := d.config.MinCUDA.Err; err != nil {
			return checks.Misread(err)
		}
		v := versionsOf(s)
		if v.driver.IsZero() && v.library.IsZero() {
			return unknownVersion(s)
		}
		v.toolkit = d.findToolkit(ctx)
		requirements, err := requirementsOf(d.environ, d.config.Lookup)
		if err != nil {
			v.badRequirement = err.Error()
		}
		v.requirements = requirements
		return v.judge(d.config.MinCUDA)
	})
}

// versions are the numbers that people take for one another.
type versions struct {
	driver  checks.Version // newest CUDA that the kernel's driver supports
	source  string         // who says so
	name    string         // version of the driver itself: "550.54.15"
	library checks.Version // CUDA of the libcuda that programs load; newer than the driver's with a compatibility package
	path    string         // of that library
	works   bool           // it can be initialised and finds GPUs
	toolkit toolkit        // of the image

	arch, brand    string
	requirements   []require.Expression
	badRequirement string
}

func versionsOf(s *survey) versions {
	m := s.management()
	v := versions{
		driver: m.cuda(), source: m.source, name: m.driver.Version,
		library: decodeCUDA(s.cuda.library.Version), path: s.cuda.library.Path, works: s.cuda.works(),
	}
	if v.driver.IsZero() {
		v.driver, v.source = v.library, "libcuda"
	}
	if v.name == "" {
		v.name = s.presence.version
	}
	for _, dev := range s.cuda.devices {
		v.arch = fmt.Sprintf("%d.%d", dev.Major, dev.Minor)
		v.brand = brandOf(dev.Name)
	}
	return v
}

// effective is the CUDA that programs get: a compatibility package counts where it works.
func (v versions) effective() checks.Version {
	if v.works && v.driver.Less(v.library) {
		return v.library
	}
	return v.driver
}

func (v versions) judge(least checks.Knob[checks.Version]) checks.Result {
	have := v.effective()
	good := checks.Result{
		Summary:   fmt.Sprintf("the driver supports CUDA %s", have),
		Said:      fmt.Sprintf("CUDA version check passed: %s (minimum: %s)", have, least.Value),
		Facts:     v.facts(),
		Threshold: &checks.Threshold{Value: least.Value.String(), Text: "at least CUDA " + least.Value.String(), Origin: least.Origin},
	}
	if !v.toolkit.version.IsZero() {
		good.Summary += fmt.Sprintf(", the image is built for %s", v.toolkit.version)
	}
	var found []finding
	if t := v.toolkit.version; have.Less(t) {
		f := finding{
			status: checks.Warn, remedy: remedyDriver,
			text: fmt.Sprintf("the driver supports CUDA %s, the image is built for %s (%s): it runs by minor-version compatibility, "+
				"but what has to be compiled for the GPU at run time fails", have, t, v.toolkit.source),
		}
		if have.Major < t.Major {
			f.status = checks.Fail
			f.text = fmt.Sprintf("driver too old for this image: the driver supports CUDA %s, the image is built for %s (%s)",
				have, t, v.toolkit.source)
			f.remedy += " On data centre GPUs the image may bring the cuda-compat package instead."
		}
		found = append(found, f)
	}
	tooOld := have.Less(least.Value)
	if tooOld {
		found = append(found, finding{
			status: checks.Fail, remedy: remedyDriver,
			text: fmt.Sprintf("the driver supports CUDA %s, at least %s is required (%s)", have, least.Value, least.Origin),
		})
	}
	found = append(found, v.unmet()...)
	res := conclude(good, found, len(found))
	switch {
	case res.Status == checks.Fail && tooOld:
		res.Said = fmt.Sprintf("CUDA version too old: %s found, %s required", have, least.Value)
	case res.Status == checks.Warn:
		res.Said = good.Said
	}
	return res
}

func (v versions) facts() []checks.Fact {
	facts := []checks.Fact{
		{Name: "driver_cuda", Value: v.driver.String(), Text: fmt.Sprintf("driver %s supports CUDA %s (from %s)", v.name, v.driver, v.source)},
	}
	if v.name != "" {
		facts = append(facts, checks.Fact{Name: "driver_version", Value: v.name})
	}
	if !v.library.IsZero() {
		facts = append(facts, checks.Fact{Name: "library_cuda", Value: v.library.String(), Text: fmt.Sprintf("%s is CUDA %s", v.path, v.library)})
	}
	if !v.toolkit.version.IsZero() {
		facts = append(facts, checks.Fact{
			Name: "image_cuda", Value: v.toolkit.version.String(), Text: fmt.Sprintf("image built for CUDA %s (from %s)", v.toolkit.version, v.toolkit.source),
		})
	}
	var required, short []string
	for _, r := range v.requirements {
		required, short = append(required, r.String()), append(short, shorten(r.String()))
	}
	if len(required) > 0 {
		facts = append(facts, checks.Fact{Name: "image_requires", Value: required, Text: "image requires " + strings.Join(short, ", and ")})
	}
	return append(facts, checks.Fact{Name: "source", Value: v.source})
}

// unknownVersion is the result where nobody tells a version. On a machine with a GPU that is a fault of the driver,
// unless nobody could be asked.
func unknownVersion(s *survey) checks.Result {
	const what = "the driver's CUDA version is not known: "
	for _, err := range []error{s.smi.err, s.nvml.err, s.cuda.err} {
		if silent(err) {
			return conclude(checks.Result{}, []finding{silence(err)}, 1)
		}
	}
	if s.nvml.failure != nil && s.smi.source == "" {
		f := failed("", *s.nvml.failure)
		f.text = what + f.text
		return conclude(checks.Result{}, []finding{f}, 1)
	}
	f := finding{status: checks.Error, text: what + "neither NVML nor nvidia-smi could be asked", remedy: trouble("", startError{}).remedy}
	if s.smi.err != nil && s.presence.tool != "" {
		f = finding{status: checks.Fail, text: what + s.smi.err.Error(), remedy: remedyModule}
	}
	return conclude(checks.Result{}, []finding{f}, 1)
}

// silence is the finding for somebody who did not answer in time.
func silence(err error) finding {
	if _, tool := err.(silenceError); tool { //nolint:errorlint // runTool returns it as it is
		return finding{
			status: checks.Fail, kind: "TimeoutError", text: err.Error(),
			remedy: "The driver hangs: look for Xid 119 and 79 in the kernel's log of the host (dmesg), and reboot it.",
		}
	}
	return trouble("", err)
}
