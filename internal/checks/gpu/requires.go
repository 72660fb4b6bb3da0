package gpu

import (
	"fmt"
	"slices"
	"strings"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/require"
	"runpodctl-worker/internal/config"
)

// anyMinor and anyMajor stand for a driver as new as need be.
const anyMinor, anyMajor = 999, 999

// unmet are the requirements of the image that this machine does not meet. Only a newer major version is beyond help.
func (v versions) unmet() []finding {
	var found []finding
	if v.badRequirement != "" {
		found = append(found, finding{
			status: checks.Warn, text: v.badRequirement, remedy: "Correct the variable in the image; it is not looked at.",
		})
	}
	have := v.effective()
	facts := require.Facts{CUDA: have.String(), Driver: v.name, Arch: v.arch, Brand: v.brand}
	for _, r := range v.requirements {
		if r.Met(facts) {
			continue
		}
		f := finding{
			status: checks.Warn, remedy: remedyDriver,
			text: fmt.Sprintf("the image requires %q, and the driver supports CUDA %s", shorten(r.String()), have),
		}
		minor, major := facts, facts
		minor.CUDA = checks.Version{Major: have.Major, Minor: anyMinor}.String()
		major.CUDA = checks.Version{Major: anyMajor}.String()
		if !r.Met(minor) && r.Met(major) {
			f.status = checks.Fail
		}
		found = append(found, f)
	}
	return found
}

// shorten leaves out what official images list for dozens of older driver branches.
func shorten(requirement string) string {
	first, rest, _ := strings.Cut(requirement, " ")
	if len(requirement) > 80 && rest != "" {
		return first + " …"
	}
	return requirement
}

// The variables of the container toolkit.
const (
	requirePrefix  = "NVIDIA_REQUIRE_"
	disableRequire = "NVIDIA_DISABLE_REQUIRE"
)

// requirementsOf reads what the image asks for in any NVIDIA_REQUIRE_ variable, all of which count.
func requirementsOf(environ []string, lookup config.Lookup) ([]require.Expression, error) {
	if off, _ := lookup(disableRequire); off != "" && off != "0" && !strings.EqualFold(off, "false") {
		return nil, nil
	}
	names := []string{requirePrefix + "CUDA"}
	for _, entry := range environ {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, requirePrefix) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var list []require.Expression
	var firstErr error
	for _, name := range names {
		text, _ := lookup(name)
		e, err := require.Parse(text)
		if err != nil && firstErr == nil {
			firstErr = fmt.Errorf("%s: %w", name, err)
		}
		if err == nil && e.String() != "" {
			list = append(list, e)
		}
	}
	return list, firstErr
}

// brandOf guesses the brand that the container toolkit would name; empty where the name does not tell.
func brandOf(model string) string {
	model = strings.ToLower(model)
	for _, b := range []struct{ part, brand string }{
		{"geforce", "geforce"},
		{"titan", "titan"},
		{"quadro", "quadro"},
		{"tesla", "tesla"},
		{"rtx a", "nvidiartx"},
		{"ada generation", "nvidiartx"},
		{" a100", "tesla"},
		{" h100", "tesla"},
		{" h200", "tesla"},
		{" b200", "tesla"},
		{" l4", "tesla"},
		{" a40", "tesla"},
		{" a30", "tesla"},
		{" a10", "tesla"},
	} {
		if strings.Contains(model, b.part) {
			return b.brand
		}
	}
	return ""
}
