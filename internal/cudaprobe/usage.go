package cudaprobe

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"

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
	maxN    = 4096 // beyond, the check of the product would overflow
	maxRuns = 1000
)

// options are the values of the flags.
type options struct {
	gpu, from, to    string
	bytes, fillBytes uint64 // fillBytes 0: by the free memory
	n, runs          int
}

// modes are the things that the program does, with the flags of each.
var modes = map[string]struct {
	flags []string
	run   func(*session, options)
}{
	"list": {nil, list},
	"memory": {[]string{"gpu", "bytes", "fill-bytes"}, onGPU(func(g *gpu, o options) bool {
		return g.memory(o.bytes) && g.fill(o.fillBytes)
	})},
	"init":    {[]string{"gpu"}, onGPU(func(g *gpu, _ options) bool { return g.memory(initBytes) })},
	"compute": {[]string{"gpu", "n", "runs"}, onGPU(func(g *gpu, o options) bool { return g.compute(o.n, o.runs) })},
	"peer":    {[]string{"from", "to"}, peer},
}

// parse makes of the command line what shall be done.
func parse(args []string) (func(*session), error) {
	if len(args) == 0 {
		return nil, errors.New("no mode given")
	}
	mode, ok := modes[args[0]]
	if !ok {
		return nil, fmt.Errorf("unknown mode %q", args[0])
	}
	o := options{bytes: 16 << 20, n: 1024, runs: 6}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for _, name := range mode.flags {
		flags.Func(name, "", func(value string) error { return o.set(name, value) })
	}
	if err := flags.Parse(args[1:]); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	required := map[string]string{"gpu": o.gpu, "from": o.from, "to": o.to}
	for _, name := range mode.flags {
		if value, ok := required[name]; ok && value == "" {
			return nil, fmt.Errorf("--%s is missing", name)
		}
	}
	return func(s *session) { mode.run(s, o) }, nil
}

func (o *options) set(name, value string) error {
	var err error
	switch name {
	case "gpu":
		o.gpu = value
	case "from":
		o.from = value
	case "to":
		o.to = value
	case "bytes":
		if o.bytes, err = bytes(value); err == nil && o.bytes == 0 {
			err = errors.New("want more than 0")
		}
	case "fill-bytes":
		o.fillBytes, err = bytes(value)
	case "n":
		if o.n, err = within(value, kernels.Tile, maxN); err == nil && o.n%kernels.Tile != 0 {
			err = fmt.Errorf("want a multiple of %d", kernels.Tile)
		}
	case "runs":
		o.runs, err = within(value, 2, maxRuns) // the first warms up
	}
	return err
}

func bytes(value string) (uint64, error) {
	n, err := strconv.ParseUint(value, 10, 63)
	if err != nil || n%wordSize != 0 {
		return 0, fmt.Errorf("want a number of bytes, a multiple of %d", wordSize)
	}
	return n, nil
}

func within(value string, least, most int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("want %d to %d", least, most)
	}
	return n, nil
}
