package kernels_test

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// module is parsed PTX: the subset that the shipped kernels use.
type module struct {
	version, target string
	entries         map[string]*entry
}

// entry is a kernel.
type entry struct {
	params    map[string]field
	paramSize int
	paramList []int          // sizes, in order
	shared    map[string]int // offsets of the shared variables
	sharedEnd int
	registers map[string]int
	labels    map[string]int
	code      []instruction
}

type field struct{ offset, size int }

type instruction struct {
	text  string
	guard *operand // runs only if this predicate holds
	op    operation
	args  []operand
}

// operand is a register, a number, a special register or an address: a base and an offset.
type operand struct {
	register int // -1: none
	special  string
	value    uint64 // a number, the address of a variable, or the offset of an address
	param    string
}

var (
	entryLine  = regexp.MustCompile(`^\.visible \.entry (\w+)\($`)
	paramLine  = regexp.MustCompile(`^\.param \.[a-z](\d+) (\w+),?$`)
	sharedLine = regexp.MustCompile(`^\.shared \.align \d+ \.b8 (\w+)\[(\d+)\];$`)
	labelLine  = regexp.MustCompile(`^(\$\w+):$`)
	codeLine   = regexp.MustCompile(`^(?:@(%p\d+)\s+)?([a-z][\w.]*)\s*(.*);$`)
	spaces     = regexp.MustCompile(`\s+`)
)

func parsePTX(text string) (*module, error) {
	m := &module{entries: map[string]*entry{}}
	var e *entry
	for number, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "//")
		line = spaces.ReplaceAllString(strings.TrimSpace(line), " ")
		if err := m.line(&e, line); err != nil {
			return nil, fmt.Errorf("line %d: %q: %w", number+1, line, err)
		}
	}
	return m, nil
}

func (m *module) line(e **entry, line string) error {
	if rest, ok := strings.CutPrefix(line, ".version "); ok {
		m.version = rest
		return nil
	}
	if rest, ok := strings.CutPrefix(line, ".target "); ok {
		m.target = rest
		return nil
	}
	if found := entryLine.FindStringSubmatch(line); found != nil {
		*e = &entry{params: map[string]field{}, shared: map[string]int{}, registers: map[string]int{}, labels: map[string]int{}}
		m.entries[found[1]] = *e
		return nil
	}
	switch line {
	case "", ")", "{", "}", ".address_size 64":
		return nil
	}
	if *e == nil {
		return fmt.Errorf("not known before an entry")
	}
	return (*e).line(line)
}

func (e *entry) line(line string) error {
	if found := paramLine.FindStringSubmatch(line); found != nil {
		size := atoi(found[1]) / 8
		e.paramSize = (e.paramSize + size - 1) / size * size
		e.params[found[2]] = field{e.paramSize, size}
		e.paramList = append(e.paramList, size)
		e.paramSize += size
		return nil
	}
	if found := sharedLine.FindStringSubmatch(line); found != nil {
		e.shared[found[1]] = e.sharedEnd
		e.sharedEnd += atoi(found[2])
		return nil
	}
	if found := labelLine.FindStringSubmatch(line); found != nil {
		e.labels[found[1]] = len(e.code)
		return nil
	}
	if strings.HasPrefix(line, ".reg ") {
		return nil // registers are made where they are used
	}
	found := codeLine.FindStringSubmatch(line)
	if found == nil {
		return fmt.Errorf("no statement of the subset")
	}
	in := instruction{text: line, op: operations[found[2]]}
	if in.op == nil {
		return fmt.Errorf("unknown operation %s", found[2])
	}
	if found[1] != "" {
		in.guard = &operand{register: e.register(found[1])}
	}
	if found[3] != "" {
		for arg := range strings.SplitSeq(found[3], ",") {
			o, err := e.operand(strings.TrimSpace(arg))
			if err != nil {
				return err
			}
			in.args = append(in.args, o)
		}
	}
	e.code = append(e.code, in)
	return nil
}

func (e *entry) operand(text string) (operand, error) {
	inner, isAddress := strings.CutPrefix(text, "[")
	inner = strings.TrimSuffix(inner, "]")
	base, offset, _ := strings.Cut(inner, "+")
	o := operand{register: -1}
	if isAddress && offset != "" {
		o.value = uint64(atoi(offset))
	}
	switch {
	case strings.HasPrefix(base, "$"):
		o.special = base // a label, which may still come
	case strings.Contains(base, "."):
		o.special = base
	case strings.HasPrefix(base, "%"):
		o.register = e.register(base)
	case strings.HasPrefix(base, "0f"):
		bits, err := strconv.ParseUint(base[2:], 16, 32)
		return operand{register: -1, value: bits}, err
	case isAddress:
		o.param = base
	default:
		if at, ok := e.shared[base]; ok {
			o.value = uint64(at)
			return o, nil
		}
		v, err := strconv.ParseInt(base, 10, 64)
		o.value = uint64(v)
		return o, err
	}
	return o, nil
}

func (e *entry) register(name string) int {
	if _, ok := e.registers[name]; !ok {
		e.registers[name] = len(e.registers)
	}
	return e.registers[name]
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return math.MinInt32 // no size or offset of real PTX: it shows as out of bounds
	}
	return n
}
