package cudaprobe

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"runpodctl-worker/internal/cudaprobe/kernels"
)

const usage = `usage: ` + program + ` list
       ` + program + ` memory --gpu UUID [--bytes N] [--fill-bytes N]
       ` + program + ` init --gpu UUID
       ` + program + ` compute --gpu UUID [--n N] [--runs N]
       ` + program + ` peer --from UUID --to UUID
       ` + program + ` --version
`

const (
	defaultBytes = 16 << 20
	defaultN     = 1024
	defaultRuns  = 6
	maxN         = 4096 // beyond, the check of the product would overflow
	maxRuns      = 1000
)

// parse makes a mode of the command line.
func parse(args []string) (mode, error) {
	if len(args) == 0 {
		return nil, errors.New("what shall be done?")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var uuid, from, to string
	var bytes, fill uint64
	var n, runs int
	one := func() { flags.StringVar(&uuid, "gpu", "", "") }
	var run mode
	check := func() error { return required("gpu", uuid) }
	switch args[0] {
	case "list":
		run, check = list, func() error { return nil }
	case "memory":
		one()
		flags.Uint64Var(&bytes, "bytes", defaultBytes, "")
		flags.Uint64Var(&fill, "fill-bytes", 0, "")
		run = onGPU(&uuid, func(g *gpu) bool { return g.memory(bytes) && g.fill(fill) })
		check = func() error {
			return errors.Join(required("gpu", uuid), words("bytes", bytes, wordSize), words("fill-bytes", fill, 0))
		}
	case "init":
		one()
		run = onGPU(&uuid, func(g *gpu) bool { return g.memory(initBytes) })
	case "compute":
		one()
		flags.IntVar(&n, "n", defaultN, "")
		flags.IntVar(&runs, "runs", defaultRuns, "")
		run = onGPU(&uuid, func(g *gpu) bool { return g.compute(n, runs) })
		check = func() error { return errors.Join(required("gpu", uuid), size(n), within("runs", runs, 2, maxRuns)) }
	case "peer":
		flags.StringVar(&from, "from", "", "")
		flags.StringVar(&to, "to", "", "")
		run = peers(&from, &to)
		check = func() error { return errors.Join(required("from", from), required("to", to)) }
	case "-h", "--help":
		return nil, flag.ErrHelp
	default:
		return nil, fmt.Errorf("unknown mode %q", args[0])
	}
	if err := flags.Parse(args[1:]); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return run, check()
}

func required(name, value string) error {
	if value == "" {
		return fmt.Errorf("--%s is missing", name)
	}
	return nil
}

func words(name string, bytes, least uint64) error {
	if bytes%wordSize != 0 || bytes < least {
		return fmt.Errorf("--%s %d: want a multiple of %d", name, bytes, wordSize)
	}
	return nil
}

func within(name string, value, least, most int) error {
	if value < least || value > most {
		return fmt.Errorf("--%s %d: want %d to %d", name, value, least, most)
	}
	return nil
}

func size(n int) error {
	if n%kernels.Tile != 0 {
		return fmt.Errorf("--n %d: want a multiple of %d", n, kernels.Tile)
	}
	return within("n", n, kernels.Tile, maxN)
}
