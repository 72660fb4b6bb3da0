package kernels_test

import (
	"encoding/binary"
	"fmt"

	"runpodctl-worker/internal/cudaprobe/cuda"
)

// gpu runs PTX, thread by thread. It is stricter than hardware: it refuses to read what nobody wrote.
type gpu struct{ regions []*memory }

// memory is a region that may be addressed, and what of it was written.
type memory struct {
	at      uint64
	data    []byte
	written []bool
}

const (
	regionGap  = 1 << 32 // no access that runs out of one region hits the next
	maxSteps   = 1 << 18 // a thread that does more does not end
	sharedBase = 1 << 20 // a shared address taken for a global one hits nothing
)

// alloc makes a region of so many words.
func (g *gpu) alloc(words int) *memory {
	m := newMemory(uint64(len(g.regions)+1)*regionGap, words*4)
	g.regions = append(g.regions, m)
	return m
}

func newMemory(at uint64, size int) *memory {
	return &memory{at: at, data: make([]byte, size), written: make([]bool, size)}
}

func (m *memory) set(i int, v uint32) {
	binary.LittleEndian.PutUint32(m.data[i*4:], v)
	for k := range 4 {
		m.written[i*4+k] = true
	}
}

func (m *memory) get(i int) uint32 { return binary.LittleEndian.Uint32(m.data[i*4:]) }

// fault is what a kernel did wrong.
type fault string

func (f fault) Error() string { return string(f) }

// word is the index in a region of an address, checked.
func word(regions []*memory, at uint64) (*memory, int) {
	if at%4 != 0 {
		panic(fault(fmt.Sprintf("misaligned address %#x", at)))
	}
	for _, m := range regions {
		if at >= m.at && at+4 <= m.at+uint64(len(m.data)) {
			return m, int(at-m.at) / 4
		}
	}
	panic(fault(fmt.Sprintf("address %#x is out of bounds", at)))
}

func load(regions []*memory, at uint64) uint32 {
	m, i := word(regions, at)
	if !m.written[i*4] {
		panic(fault(fmt.Sprintf("address %#x is read before it is written", at)))
	}
	return m.get(i)
}

func store(regions []*memory, at uint64, v uint32) {
	m, i := word(regions, at)
	m.set(i, v)
}

// thread is one thread of a block.
type thread struct {
	gpu      *gpu
	entry    *entry
	params   []byte
	shared   []*memory
	specials map[string]uint64
	values   []uint64
	known    []bool // registers that were written
	pc       int
	state    state
}

type state int

const (
	running state = iota
	waiting       // at a barrier
	ended
)

// launch runs a kernel; args are uint32 and uint64, as it declares them.
func (g *gpu) launch(e *entry, shape cuda.Shape, args ...any) (err error) {
	var params []byte
	for _, a := range args {
		for size := binary.Size(a); len(params)%size != 0; {
			params = append(params, 0)
		}
		params, _ = binary.Append(params, binary.LittleEndian, a)
	}
	if len(params) != e.paramSize {
		return fmt.Errorf("%d bytes of parameters, want %d", len(params), e.paramSize)
	}
	for by := range shape.Grid[1] {
		for bx := range shape.Grid[0] {
			if err := g.block(e, shape, bx, by, params); err != nil {
				return fmt.Errorf("block %d,%d: %w", bx, by, err)
			}
		}
	}
	return nil
}

func (g *gpu) block(e *entry, shape cuda.Shape, bx, by uint32, params []byte) error {
	shared := []*memory{newMemory(sharedBase, e.sharedEnd)}
	var threads []*thread
	for y := range shape.Block[1] {
		for x := range shape.Block[0] {
			threads = append(threads, &thread{
				gpu: g, entry: e, params: params, shared: shared,
				specials: map[string]uint64{
					"%tid.x": uint64(x), "%tid.y": uint64(y), "%ctaid.x": uint64(bx), "%ctaid.y": uint64(by),
					"%ntid.x": uint64(shape.Block[0]), "%nctaid.x": uint64(shape.Grid[0]),
				},
				values: make([]uint64, len(e.registers)), known: make([]bool, len(e.registers)),
			})
		}
	}
	for {
		for _, t := range threads {
			if err := t.run(); err != nil {
				return err
			}
		}
		first := threads[0]
		for _, t := range threads {
			if t.state != first.state || t.state == waiting && t.pc != first.pc {
				return fault("threads of a block diverge at a barrier")
			}
		}
		if first.state == ended {
			return nil
		}
		for _, t := range threads {
			t.state = running
		}
	}
}

// run goes on to the next barrier or to the end.
func (t *thread) run() (err error) {
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(fault)
			if !ok {
				panic(p)
			}
			err = fmt.Errorf("%q: %w", t.entry.code[t.pc-1].text, f)
		}
	}()
	for range maxSteps {
		if t.pc >= len(t.entry.code) {
			return fault("ran past the end")
		}
		in := &t.entry.code[t.pc]
		t.pc++
		if in.guard != nil && t.get(*in.guard) == 0 {
			continue
		}
		if in.op(t, in.args); t.state != running {
			return nil
		}
	}
	return fault("does not end")
}

func (t *thread) get(o operand) uint64 {
	switch {
	case o.register >= 0:
		if !t.known[o.register] {
			panic(fault("a register is read before it is written"))
		}
		return t.values[o.register]
	case o.special != "":
		v, ok := t.specials[o.special]
		if !ok {
			panic(fault("unknown register " + o.special))
		}
		return v
	}
	return o.value
}

func (t *thread) set(o operand, v uint64) { t.values[o.register], t.known[o.register] = v, true }

// address is where an operand in brackets points to.
func (t *thread) address(o operand) uint64 {
	return t.get(operand{register: o.register, special: o.special}) + o.value
}
