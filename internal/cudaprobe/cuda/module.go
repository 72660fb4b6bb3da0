package cuda

import (
	"runtime"
	"strings"
	"unsafe"
)

// Module is device code that the driver has compiled for its GPU.
type Module struct {
	context *Context
	handle  uintptr
}

// Kernel is a function of a module.
type Kernel struct {
	context *Context
	handle  uintptr
}

// Shape is how many threads a kernel is run by.
type Shape struct{ Grid, Block [2]uint32 }

// Options of the driver's compiler.
const (
	jitLogBuffer = 5
	jitLogSize   = 6
)

const logSize = 8 << 10

// Load compiles PTX. The error of a refusal holds the words of the compiler.
func (c *Context) Load(ptx string) (*Module, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	log := make([]byte, logSize)
	image := append([]byte(ptx), 0)
	// The driver finds the log by an address that stands in another buffer, where the collector does not look for it.
	var pins runtime.Pinner
	pins.Pin(&log[0])
	defer pins.Unpin()
	keys := []int32{jitLogBuffer, jitLogSize}
	values := []uintptr{uintptr(pointer(log)), logSize}

	m := &Module{context: c}
	code := c.driver.calls.moduleLoad(&m.handle, &image[0], uint32(len(keys)), &keys[0], &values[0])
	if code != 0 {
		refusal := Error{Call: "cuModuleLoadDataEx", Code: int(code), Name: c.driver.nameOf(code)}
		if words := strings.TrimSpace(text(&log[0])); words != "" {
			refusal.Name = words
		}
		return nil, refusal
	}
	c.owned = append(c.owned, func() error { return c.driver.check("cuModuleUnload", c.driver.calls.moduleUnload(m.handle)) })
	return m, nil
}

// Kernel finds a function by its name.
func (m *Module) Kernel(name string) (Kernel, error) {
	k := Kernel{context: m.context}
	if err := m.context.enter(); err != nil {
		return k, err
	}
	d := m.context.driver
	return k, d.check("cuModuleGetFunction", d.calls.moduleGetFunction(&k.handle, m.handle, name))
}

// Launch starts a kernel and does not wait for it. The arguments are pointers to what the kernel declares.
func (k Kernel) Launch(s Shape, args ...unsafe.Pointer) error {
	if err := k.context.enter(); err != nil {
		return err
	}
	var pins runtime.Pinner
	for _, a := range args {
		pins.Pin(a)
	}
	defer pins.Unpin()
	d := k.context.driver
	return d.check("cuLaunchKernel", d.calls.launch(k.handle, s.Grid[0], s.Grid[1], 1, s.Block[0], s.Block[1], 1, 0, 0,
		unsafe.SliceData(args), 0))
}
