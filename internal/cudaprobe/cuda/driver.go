// Package cuda speaks to the CUDA driver library, without cgo and without the CUDA toolkit. A context belongs to a
// thread, so whoever uses this package stays on one: see runtime.LockOSThread.
package cuda

import (
	"encoding/hex"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/internal/cudaprobe/dynlib"
)

const library = "libcuda.so.1"

// folders are where container runtimes and distributions put the driver's library, should the loader not know.
var folders = []string{
	"/usr/local/nvidia/lib64", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib/wsl/lib",
}

// Driver is the loaded driver library.
type Driver struct {
	Path    string // of the library
	calls   calls
	current *Context // of this thread
}

// Open loads the driver library. It touches no GPU.
func Open() (*Driver, error) {
	lib, err := dynlib.Open(library, folders...)
	if err != nil {
		return nil, err
	}
	d := &Driver{}
	if err := d.calls.bind(lib); err != nil {
		return nil, err
	}
	d.Path = lib.Path
	return d, nil
}

// Version is the CUDA version that the library supports: 12040 is 12.4. It works without a GPU.
func (d *Driver) Version() (int, error) {
	var v int32
	err := d.check("cuDriverGetVersion", d.calls.driverGetVersion(&v))
	return int(v), err
}

// Init starts the driver.
func (d *Driver) Init() error { return d.check("cuInit", d.calls.initialize(0)) }

// Attributes of a device.
const (
	attrComputeMode = 20
	attrMajor       = 75
	attrMinor       = 76
)

const textSize = 256 // room for a name or a PCI address

// Devices lists what CUDA sees. No context is created.
func (d *Driver) Devices() ([]wire.Device, error) {
	var count int32
	if err := d.check("cuDeviceGetCount", d.calls.deviceGetCount(&count)); err != nil {
		return nil, err
	}
	devices := make([]wire.Device, count)
	for i := range devices {
		devices[i].Index = i
		if err := d.describe(&devices[i]); err != nil {
			return nil, err
		}
	}
	return devices, nil
}

func (d *Driver) describe(to *wire.Device) error {
	handle, err := d.handle(to.Index)
	if err != nil {
		return err
	}
	var name, pci [textSize]byte
	if err := d.check("cuDeviceGetName", d.calls.deviceGetName(&name[0], textSize, handle)); err != nil {
		return err
	}
	if err := d.check("cuDeviceGetPCIBusId", d.calls.deviceGetPCIBusID(&pci[0], textSize, handle)); err != nil {
		return err
	}
	var uuid [16]byte
	if err := d.check("cuDeviceGetUuid", d.calls.deviceGetUUID(&uuid, handle)); err != nil {
		return err
	}
	to.Name, to.PCI = text(&name[0]), text(&pci[0])
	to.UUID = uuidText(uuid, strings.Contains(to.Name, " MIG "))
	if err := d.check("cuDeviceTotalMem_v2", d.calls.deviceTotalMem(&to.Total, handle)); err != nil {
		return err
	}
	for _, a := range []struct {
		attribute int32
		to        *int
	}{{attrMajor, &to.Major}, {attrMinor, &to.Minor}, {attrComputeMode, &to.Mode}} {
		var value int32
		if err := d.check("cuDeviceGetAttribute", d.calls.deviceGetAttribute(&value, a.attribute, handle)); err != nil {
			return err
		}
		*a.to = int(value)
	}
	return nil
}

func (d *Driver) handle(index int) (int32, error) {
	var handle int32
	err := d.check("cuDeviceGet", d.calls.deviceGet(&handle, int32(index)))
	return handle, err
}

// uuidText writes a UUID as nvidia-smi does.
func uuidText(u [16]byte, slice bool) string {
	s := hex.EncodeToString(u[:])
	kind := "GPU"
	if slice {
		kind = "MIG"
	}
	return strings.Join([]string{kind, s[:8], s[8:12], s[12:16], s[16:20], s[20:]}, "-")
}

// text is the Go string of a C string.
func text(s *byte) string { return unix.BytePtrToString(s) }

// pointer is what C is given for a Go slice.
func pointer[T any](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }
