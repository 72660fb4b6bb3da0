package cudaprobe

import (
	"fmt"
	"slices"

	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/internal/cudaprobe/cuda"
)

// session is the driver at work, and who is told of it. A step that fails ends it: nothing is freed then, since a broken
// driver may hang over that too, and the end of the process frees all.
type session struct {
	report report
	driver *cuda.Driver
}

// gpu is a GPU with a context.
type gpu struct {
	session *session
	index   int
	context *cuda.Context
}

func list(s *session, _ options) { s.open() }

// onGPU is a mode that tests one GPU.
func onGPU(test func(*gpu, options) bool) func(*session, options) {
	return func(s *session, o options) {
		indexes, ok := s.open(o.gpu)
		if !ok {
			return
		}
		if g, ok := s.enter(indexes[0]); ok && test(g, o) {
			g.leave()
		}
	}
}

// open loads and starts the driver and lists its devices; the ones asked for must be there.
func (s *session) open(uuids ...string) ([]int, bool) {
	var indexes []int
	ok := s.report.step(wire.CUDALoad, wire.NoGPU, s.load) &&
		s.report.step(wire.CUDAInit, wire.NoGPU, func() (any, error) { return nil, s.driver.Init() }) &&
		s.report.step(wire.CUDAList, wire.NoGPU, func() (any, error) {
			devices, err := s.driver.Devices()
			if err != nil {
				return nil, err
			}
			indexes, err = find(devices, uuids)
			return devices, err
		})
	return indexes, ok
}

func (s *session) load() (any, error) {
	driver, err := cuda.Open()
	if err != nil {
		return nil, err
	}
	s.driver = driver
	version, err := driver.Version()
	return wire.Library{Path: driver.Path, Version: version}, err
}

func find(devices []wire.Device, uuids []string) ([]int, error) {
	indexes := make([]int, len(uuids))
	for i, uuid := range uuids {
		indexes[i] = slices.IndexFunc(devices, func(d wire.Device) bool { return d.UUID == uuid })
		if indexes[i] < 0 {
			return nil, fmt.Errorf("CUDA does not see the GPU %s, only %d other(s)", uuid, len(devices))
		}
	}
	return indexes, nil
}

// enter makes a context on a GPU.
func (s *session) enter(index int) (*gpu, bool) {
	g := &gpu{session: s, index: index}
	ok := g.step(wire.CUDAContext, func() (any, error) {
		var err error
		if g.context, err = s.driver.NewContext(index); err != nil {
			return nil, err
		}
		return g.context.Memory()
	})
	return g, ok
}

func (g *gpu) leave() bool {
	return g.step(wire.CUDATeardown, func() (any, error) { return nil, g.context.Close() })
}

func (g *gpu) step(step wire.Step, do func() (any, error)) bool {
	return g.session.report.step(step, g.index, do)
}
