package cuda

import (
	"fmt"
	"slices"
)

const codePeerAlreadyOpen = 704

// refusals are the codes that speak of the driver's compiler or of our PTX, not of the GPU: an image or PTX that is not
// valid, no code for this GPU, no compiler, PTX too new for it, compiler switched off.
var refusals = []int{200, 209, 218, 221, 222, 223}

// Error is a call that the driver refused.
type Error struct {
	Call string // as the library exports it
	Code int
	Name string // the driver's name for the code, or what its compiler wrote
}

func (e Error) Error() string { return fmt.Sprintf("%s: %s (%d)", e.Call, e.Name, e.Code) }

// Uncompiled tells whether the driver could not compile our code. What the GPU is worth, that does not say.
func (e Error) Uncompiled() bool { return slices.Contains(refusals, e.Code) }

// check makes an error of what a call returned.
func (d *Driver) check(call string, code int32) error {
	if code == 0 {
		return nil
	}
	return Error{Call: call, Code: int(code), Name: d.nameOf(code)}
}

func (d *Driver) nameOf(code int32) string {
	var name *byte
	if d.calls.getErrorName == nil || d.calls.getErrorName(code, &name) != 0 || name == nil {
		return "unknown error"
	}
	return text(name)
}
