package cuda

import (
	"errors"

	"runpodctl-worker/internal/checks/gpu/wire"
)

// Context is the primary context of a device: the one that the runtime API uses too.
type Context struct {
	driver *Driver
	device int32
	handle uintptr
	owned  []func() error // frees what was made in it, oldest first
}

// NewContext makes the context of a device, which costs GPU memory until it is closed.
func (d *Driver) NewContext(index int) (*Context, error) {
	device, err := d.handle(index)
	if err != nil {
		return nil, err
	}
	c := &Context{driver: d, device: device}
	if err := d.check("cuDevicePrimaryCtxRetain", d.calls.contextRetain(&c.handle, device)); err != nil {
		return nil, err
	}
	return c, c.enter()
}

// enter makes this the thread's context.
func (c *Context) enter() error {
	if c.driver.current == c {
		return nil
	}
	if err := c.driver.check("cuCtxSetCurrent", c.driver.calls.contextSetCurrent(c.handle)); err != nil {
		return err
	}
	c.driver.current = c
	return nil
}

// Scope runs a function and then frees what it made on the GPU. After an error nothing is freed: a broken context would
// refuse that too, or hang, and the end of the process frees it in any case.
func (c *Context) Scope(use func() error) error {
	mark := len(c.owned)
	if err := use(); err != nil {
		return err
	}
	return c.free(mark)
}

// free frees what was made since the list was that long.
func (c *Context) free(mark int) error {
	if err := c.enter(); err != nil {
		return err
	}
	for len(c.owned) > mark {
		last := len(c.owned) - 1
		if err := c.owned[last](); err != nil {
			return err
		}
		c.owned = c.owned[:last]
	}
	return nil
}

// Close frees what is left and gives the context back.
func (c *Context) Close() error {
	if err := c.free(0); err != nil {
		return err
	}
	d := c.driver
	d.current = nil
	if err := d.check("cuCtxSetCurrent", d.calls.contextSetCurrent(0)); err != nil {
		return err
	}
	return d.check("cuDevicePrimaryCtxRelease_v2", d.calls.contextRelease(c.device))
}

// Synchronize waits for all that was asked of the GPU. What a kernel did wrong shows here.
func (c *Context) Synchronize() error {
	if err := c.enter(); err != nil {
		return err
	}
	return c.driver.check("cuCtxSynchronize", c.driver.calls.contextSynchronize())
}

// Memory says how much memory the GPU has, and how much of it is free.
func (c *Context) Memory() (wire.Memory, error) {
	var m wire.Memory
	if err := c.enter(); err != nil {
		return m, err
	}
	err := c.driver.check("cuMemGetInfo_v2", c.driver.calls.memGetInfo(&m.Free, &m.Total))
	return m, err
}

// CanAccess says whether this GPU can reach the memory of another one.
func (c *Context) CanAccess(peer *Context) (bool, error) {
	var can int32
	err := c.driver.check("cuDeviceCanAccessPeer", c.driver.calls.deviceCanAccess(&can, c.device, peer.device))
	return can != 0, err
}

// OpenPeer lets this context reach the memory of another GPU.
func (c *Context) OpenPeer(peer *Context) error {
	if err := c.enter(); err != nil {
		return err
	}
	err := c.driver.check("cuCtxEnablePeerAccess", c.driver.calls.contextEnablePeer(peer.handle, 0))
	if refused, ok := errors.AsType[Error](err); ok && refused.Code == codePeerAlreadyOpen {
		return nil
	}
	return err
}
