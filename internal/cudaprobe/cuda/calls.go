package cuda

import (
	"unsafe"

	"runpodctl-worker/internal/cudaprobe/dynlib"
)

// calls are the driver's functions as C declares them.
type calls struct {
	driverGetVersion func(version *int32) int32
	initialize       func(flags uint32) int32
	getErrorName     func(code int32, name **byte) int32

	deviceGetCount     func(count *int32) int32
	deviceGet          func(device *int32, ordinal int32) int32
	deviceGetName      func(name *byte, size, device int32) int32
	deviceGetPCIBusID  func(id *byte, size, device int32) int32
	deviceGetUUID      func(uuid *[16]byte, device int32) int32
	deviceGetAttribute func(value *int32, attribute, device int32) int32
	deviceTotalMem     func(bytes *uint64, device int32) int32
	deviceCanAccess    func(can *int32, device, peer int32) int32

	contextRetain      func(context *uintptr, device int32) int32
	contextRelease     func(device int32) int32
	contextSetCurrent  func(context uintptr) int32
	contextSynchronize func() int32
	contextEnablePeer  func(peer uintptr, flags uint32) int32

	memGetInfo  func(free, total *uint64) int32
	memAlloc    func(address *Address, bytes uint64) int32
	memFree     func(address Address) int32
	memcpyTo    func(to Address, from unsafe.Pointer, bytes uint64) int32
	memcpyFrom  func(to unsafe.Pointer, from Address, bytes uint64) int32
	memcpyPeers func(to Address, toContext uintptr, from Address, fromContext uintptr, bytes uint64) int32

	moduleLoad        func(module *uintptr, image *byte, options uint32, keys *int32, values *uintptr) int32
	moduleUnload      func(module uintptr) int32
	moduleGetFunction func(function *uintptr, module uintptr, name string) int32
	launch            func(function uintptr, gx, gy, gz, bx, by, bz, shared uint32, stream uintptr, params *unsafe.Pointer, extra uintptr) int32

	eventCreate      func(event *uintptr, flags uint32) int32
	eventRecord      func(event, stream uintptr) int32
	eventSynchronize func(event uintptr) int32
	eventElapsed     func(ms *float32, from, to uintptr) int32
	eventDestroy     func(event uintptr) int32
}

// bind looks the functions up by the names that the library exports, which are not always those of the manual.
func (c *calls) bind(lib *dynlib.Library) error {
	for _, f := range []struct {
		fn      any
		symbols string
	}{
		{&c.driverGetVersion, "cuDriverGetVersion"},
		{&c.initialize, "cuInit"},
		{&c.getErrorName, "cuGetErrorName?"},
		{&c.deviceGetCount, "cuDeviceGetCount"},
		{&c.deviceGet, "cuDeviceGet"},
		{&c.deviceGetName, "cuDeviceGetName"},
		{&c.deviceGetPCIBusID, "cuDeviceGetPCIBusId"},
		{&c.deviceGetUUID, "cuDeviceGetUuid_v2|cuDeviceGetUuid"}, // the older one knows no MIG devices
		{&c.deviceGetAttribute, "cuDeviceGetAttribute"},
		{&c.deviceTotalMem, "cuDeviceTotalMem_v2"},
		{&c.deviceCanAccess, "cuDeviceCanAccessPeer"},
		{&c.contextRetain, "cuDevicePrimaryCtxRetain"},
		{&c.contextRelease, "cuDevicePrimaryCtxRelease_v2|cuDevicePrimaryCtxRelease"},
		{&c.contextSetCurrent, "cuCtxSetCurrent"},
		{&c.contextSynchronize, "cuCtxSynchronize"},
		{&c.contextEnablePeer, "cuCtxEnablePeerAccess"},
		{&c.memGetInfo, "cuMemGetInfo_v2"},
		{&c.memAlloc, "cuMemAlloc_v2"},
		{&c.memFree, "cuMemFree_v2"},
		{&c.memcpyTo, "cuMemcpyHtoD_v2"},
		{&c.memcpyFrom, "cuMemcpyDtoH_v2"},
		{&c.memcpyPeers, "cuMemcpyPeer"},
		{&c.moduleLoad, "cuModuleLoadDataEx"},
		{&c.moduleUnload, "cuModuleUnload"},
		{&c.moduleGetFunction, "cuModuleGetFunction"},
		{&c.launch, "cuLaunchKernel"},
		{&c.eventCreate, "cuEventCreate"},
		{&c.eventRecord, "cuEventRecord"},
		{&c.eventSynchronize, "cuEventSynchronize"},
		{&c.eventElapsed, "cuEventElapsedTime"},
		{&c.eventDestroy, "cuEventDestroy_v2"},
	} {
		if err := lib.Bind(f.fn, f.symbols); err != nil {
			return err
		}
	}
	return nil
}
