package cuda

import (
	"unsafe"
)

// Address is a place in the memory of a GPU.
type Address uint64

// Word is what memory is copied in.
type Word interface{ uint32 | float32 }

// Alloc takes memory of the GPU until the end of the scope.
func (c *Context) Alloc(bytes uint64) (Address, error) {
	if err := c.enter(); err != nil {
		return 0, err
	}
	var a Address
	if err := c.driver.check("cuMemAlloc_v2", c.driver.calls.memAlloc(&a, bytes)); err != nil {
		return 0, err
	}
	c.owned = append(c.owned, func() error { return c.driver.check("cuMemFree_v2", c.driver.calls.memFree(a)) })
	return a, nil
}

// Write copies words to the GPU.
func Write[T Word](c *Context, to Address, from []T) error {
	if err := c.enter(); err != nil {
		return err
	}
	return c.driver.check("cuMemcpyHtoD_v2", c.driver.calls.memcpyTo(to, pointer(from), bytesOf(from)))
}

// Read copies words from the GPU, once all that was asked of it is done.
func Read[T Word](c *Context, to []T, from Address) error {
	if err := c.enter(); err != nil {
		return err
	}
	return c.driver.check("cuMemcpyDtoH_v2", c.driver.calls.memcpyFrom(pointer(to), from, bytesOf(to)))
}

// CopyPeer copies from the memory of this GPU to that of another.
func (c *Context) CopyPeer(to *Context, target, source Address, bytes uint64) error {
	if err := c.enter(); err != nil {
		return err
	}
	return c.driver.check("cuMemcpyPeer", c.driver.calls.memcpyPeers(target, to.handle, source, c.handle, bytes))
}

func bytesOf[T Word](s []T) uint64 { return uint64(len(s)) * uint64(unsafe.Sizeof(*new(T))) }
