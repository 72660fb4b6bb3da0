package kernels_test

import (
	"encoding/binary"
	"fmt"
	"math"
)

// operation is what an instruction does to a thread.
type operation func(t *thread, args []operand)

var operations map[string]operation

func init() { // the operations and what runs them know each other
	operations = map[string]operation{
		"mov.u32": move, "mov.u64": move, "mov.f32": move, "cvta.to.global.u64": move, "cvt.u64.u32": move,
		"cvt.u32.u64":  binary32(func(a, _ uint32) uint32 { return a }),
		"ld.param.u32": loadParam, "ld.param.u64": loadParam,
		"ld.global.f32": loadGlobal, "ld.global.u32": loadGlobal,
		"st.global.f32": storeGlobal, "st.global.u32": storeGlobal,
		"ld.shared.f32": loadShared, "st.shared.f32": storeShared,
		"atom.global.add.u32": atomicAdd,

		"add.s32":    binary32(func(a, b uint32) uint32 { return a + b }),
		"sub.s32":    binary32(func(a, b uint32) uint32 { return a - b }),
		"mul.lo.s32": binary32(func(a, b uint32) uint32 { return a * b }),
		"xor.b32":    binary32(func(a, b uint32) uint32 { return a ^ b }),
		"shl.b32":    binary32(func(a, b uint32) uint32 { return a << b }),
		"shr.u32":    binary32(func(a, b uint32) uint32 { return a >> b }),
		"add.s64":    binary64(func(a, b uint64) uint64 { return a + b }),
		"shl.b64":    binary64(func(a, b uint64) uint64 { return a << b }),
		"shr.u64":    binary64(func(a, b uint64) uint64 { return a >> b }),
		// The operands are 32 bits wide, the product 64.
		"mul.wide.u32": binary64(func(a, b uint64) uint64 { return uint64(uint32(a)) * uint64(uint32(b)) }),
		"mad.lo.s32": func(t *thread, a []operand) {
			t.set(a[0], uint64(uint32(t.get(a[1]))*uint32(t.get(a[2]))+uint32(t.get(a[3]))))
		},
		"fma.rn.f32": func(t *thread, a []operand) {
			t.set(a[0], uint64(math.Float32bits(fma32(t.float(a[1]), t.float(a[2]), t.float(a[3])))))
		},

		"setp.eq.s32": compare(func(a, b uint64) bool { return uint32(a) == uint32(b) }),
		"setp.lt.u32": compare(func(a, b uint64) bool { return uint32(a) < uint32(b) }),
		"setp.lt.u64": compare(func(a, b uint64) bool { return a < b }),
		"setp.ge.u64": compare(func(a, b uint64) bool { return a >= b }),

		"bra": branch, "bra.uni": branch,
		"bar.sync": func(t *thread, _ []operand) { t.state = waiting },
		"ret":      func(t *thread, _ []operand) { t.state = ended },
	}
}

// fma32 rounds once: the product of two float32 is exact in a float64, and so is the sum of the small whole numbers here.
func fma32(a, b, c float32) float32 { return float32(float64(a)*float64(b) + float64(c)) }

func (t *thread) float(o operand) float32 { return math.Float32frombits(uint32(t.get(o))) }

func move(t *thread, a []operand) { t.set(a[0], t.get(a[1])) }

func binary32(f func(a, b uint32) uint32) operation {
	return func(t *thread, a []operand) {
		t.set(a[0], uint64(f(uint32(t.get(a[1])), uint32(t.get(a[len(a)-1])))))
	}
}

func binary64(f func(a, b uint64) uint64) operation {
	return func(t *thread, a []operand) { t.set(a[0], f(t.get(a[1]), t.get(a[2]))) }
}

func compare(f func(a, b uint64) bool) operation {
	return func(t *thread, a []operand) {
		var v uint64
		if f(t.get(a[1]), t.get(a[2])) {
			v = 1
		}
		t.set(a[0], v)
	}
}

func branch(t *thread, a []operand) {
	to, ok := t.entry.labels[a[0].special]
	if !ok {
		panic(fault("no label " + a[0].special))
	}
	t.pc = to
}

func loadParam(t *thread, a []operand) {
	p, ok := t.entry.params[a[1].param]
	if !ok {
		panic(fault(fmt.Sprintf("no parameter %s", a[1].param)))
	}
	if p.size == 4 {
		t.set(a[0], uint64(binary.LittleEndian.Uint32(t.params[p.offset:])))
		return
	}
	t.set(a[0], binary.LittleEndian.Uint64(t.params[p.offset:]))
}

func loadGlobal(t *thread, a []operand) { t.set(a[0], uint64(load(t.gpu.regions, t.address(a[1])))) }

func storeGlobal(t *thread, a []operand) { store(t.gpu.regions, t.address(a[0]), uint32(t.get(a[1]))) }

func loadShared(t *thread, a []operand) {
	t.set(a[0], uint64(load(t.shared, sharedBase+t.address(a[1]))))
}

func storeShared(t *thread, a []operand) {
	store(t.shared, sharedBase+t.address(a[0]), uint32(t.get(a[1])))
}

func atomicAdd(t *thread, a []operand) {
	at := t.address(a[1])
	old := load(t.gpu.regions, at)
	t.set(a[0], uint64(old))
	store(t.gpu.regions, at, old+uint32(t.get(a[2])))
}
