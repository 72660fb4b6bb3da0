package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// splitCommand cuts the command line at "--": what follows is the user's own program.
func splitCommand(args []string) (own, command []string) {
	if i := slices.Index(args, "--"); i >= 0 {
		return args[:i], args[i+1:]
	}
	return args, nil
}

// normalize lets every flag be written with dashes or underscores, as the Python SDK has both, and lets
// the common flags stand before the command as well as after it.
func normalize(args []string, app *cli.App) []string {
	spelling, takesValue := map[string]string{}, map[string]bool{}
	learn := func(flags []cli.Flag) {
		for _, f := range flags {
			_, isBool := f.(*cli.BoolFlag)
			for _, name := range f.Names() {
				spelling[dashed(name)] = name
				takesValue[name] = !isBool
			}
		}
	}
	learn(app.Flags)
	for _, cmd := range app.Commands {
		learn(cmd.Flags)
	}

	out := slices.Clone(args)
	for i, arg := range out {
		name, value, hasValue := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		known, ok := spelling[dashed(name)]
		if i == 0 || !ok || !strings.HasPrefix(arg, "--") {
			continue
		}
		out[i] = "--" + known
		if hasValue {
			out[i] += "=" + value
		}
	}
	if i := commandIndex(out, takesValue); i > 1 && app.Command(out[i]) != nil {
		leading := slices.Clone(out[1:i])
		out = slices.Concat(out[:1], out[i:i+1], leading, out[i+1:])
	}
	if len(out) > 1 && out[1] == commandCache {
		out = slices.Concat(out[:2], flagsFirst(out[2:], takesValue))
	}
	return out
}

// flagsFirst puts the flags before the arguments that stand between them, where the parser would end at the first of these.
func flagsFirst(args []string, takesValue map[string]bool) []string {
	var flags, rest []string
	for i := 0; i < len(args); i++ {
		if args[i] == "-" || !strings.HasPrefix(args[i], "-") {
			rest = append(rest, args[i])
			continue
		}
		flags = append(flags, args[i])
		if takesValue[strings.TrimPrefix(args[i], "--")] && i+1 < len(args) {
			i++
			flags = append(flags, args[i])
		}
	}
	if slices.Contains(flags, "--help") || slices.Contains(flags, "-h") {
		return flags // the help is about the command, not about what it is to do
	}
	return append(flags, rest...)
}

// commandIndex finds the first argument that is neither a flag nor a flag's value.
func commandIndex(args []string, takesValue map[string]bool) int {
	for i := 1; i < len(args); i++ {
		name, isFlag := strings.CutPrefix(args[i], "--")
		if !isFlag {
			return i
		}
		if takesValue[name] { // "--name=value" is not in the map, and needs no skipping
			i++
		}
	}
	return -1
}

func dashed(name string) string { return strings.ReplaceAll(name, "_", "-") }
