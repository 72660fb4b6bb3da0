package gpu

import (
	"fmt"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/wire"
)

// code is what a driver's return code means to the owner of the machine.
type code struct {
	name   string // of the header, without its prefix
	text   string // what it means; empty: the name says all that is known
	remedy string // empty: remedyUnknown
	taken  bool   // the GPU works, and somebody else has it
}

// The remedies that several causes share.
const (
	remedyUnknown = "Look for NVRM and Xid in the kernel's log of the host (dmesg), and reset the GPU or reboot. Take another machine if it comes back."
	remedyMemory  = "Drain the machine and reset the GPU (nvidia-smi --gpu-reset) or reboot. Take it out of service if it comes back."
	remedyKernel  = "The kernel of this test is fixed and verified, so suspect the GPU or its driver: look for Xid in dmesg, reset the GPU."
	remedyBus     = "Reboot the host: a reset is not enough. If it comes back, look at power, riser and cooling."
	remedyBusy    = "Stop the other process (nvidia-smi lists them), or allow sharing: nvidia-smi -c DEFAULT."
	remedyFull    = "Find out who holds the memory: nvidia-smi lists processes, and one that was killed may still have it. On MIG and MPS a limit may be set."
	remedyMPS     = "Look at nvidia-cuda-mps-control on the host, and whether CUDA_MPS_PIPE_DIRECTORY is mounted here."
	remedyFabric  = "Start nvidia-fabricmanager of exactly the driver's version on the host. In a virtual machine the fabric partition must be active."
	remedyVersion = "The host's driver was upgraded under this container: restart the container, or reboot the host. With /usr/local/cuda/compat in LD_LIBRARY_PATH, that package does not fit this driver."
	remedyAccess  = "The container lost its device permissions, as after a systemctl daemon-reload on the host: create the container anew. Else look at user, file mode and seccomp profile."
	remedyVisible = "CUDA_VISIBLE_DEVICES must name GPUs that are here; empty and -1 hide them all. Else the container was started without GPUs (--gpus all), or MIG is on without an instance."
	remedyCompute = "NVIDIA_DRIVER_CAPABILITIES must contain compute: set it to compute,utility."
	remedyUtility = "NVIDIA_DRIVER_CAPABILITIES must contain utility: set it to compute,utility."
	remedyDriver  = "Upgrade the host's driver, or use an image for an older CUDA. On Runpod, set the endpoint's allowed CUDA versions to those that the image needs."
	remedyModule  = "Run nvidia-smi on the host. After a kernel update the driver's module has to be built again (dkms)."
	remedyPower   = "Check the power cable of the GPU."
)

// cudaCodes are the codes of the CUDA driver, CUresult.
var cudaCodes = map[int]code{
	1:   {name: "INVALID_VALUE"},
	2:   {"OUT_OF_MEMORY", "not enough free memory on the GPU", remedyFull, true},
	3:   {"NOT_INITIALIZED", "the driver is not initialised", remedyFabric, false},
	4:   {name: "DEINITIALIZED"},
	34:  {"STUB_LIBRARY", "a stub of libcuda is loaded, which is for linking only", "Take the folder cuda/lib64/stubs out of LD_LIBRARY_PATH.", false},
	36:  {"CALL_REQUIRES_NEWER_DRIVER", "the driver is older than the call", remedyDriver, false},
	46:  {"DEVICE_UNAVAILABLE", "it is in exclusive mode and taken by another process, or computing is prohibited", remedyBusy, true},
	100: {"NO_DEVICE", "CUDA sees no GPU", remedyVisible, false},
	101: {"INVALID_DEVICE", "CUDA_VISIBLE_DEVICES names a GPU that is not here", remedyVisible, false},
	102: {"DEVICE_NOT_LICENSED", "the virtual GPU has no licence", "Look at the licence server of the vGPU (nvidia-smi -q).", false},
	200: {name: "INVALID_IMAGE"},
	201: {name: "INVALID_CONTEXT"},
	209: {"NO_BINARY_FOR_GPU", "the driver cannot compile for this GPU", "Unset CUDA_DISABLE_PTX_JIT and CUDA_FORCE_PTX_JIT; else the GPU is older than Maxwell.", false},
	214: {"ECC_UNCORRECTABLE", "an uncorrectable memory error", remedyMemory, false},
	218: {"INVALID_PTX", "the driver's compiler refused the test's kernel", "Please report this with the compiler's words and the driver's version.", false},
	220: {"NVLINK_UNCORRECTABLE", "an uncorrectable NVLink error", remedyMemory, false},
	221: {"JIT_COMPILER_NOT_FOUND", "the driver's compiler, libnvidia-ptxjitcompiler.so.1, is not in this container", remedyCompute, false},
	222: {"UNSUPPORTED_PTX_VERSION", "the driver is older than the test's kernel", remedyDriver, false},
	223: {"JIT_COMPILATION_DISABLED", "the driver's compiler is switched off", "Unset CUDA_DISABLE_PTX_JIT.", false},
	226: {"CONTAINED", "a memory error was contained to this process", remedyMemory, false},
	304: {"OPERATING_SYSTEM", "a call of the operating system failed in the driver", "Look at the limit of locked memory (ulimit -l), the seccomp profile and missing device nodes.", false},
	400: {name: "INVALID_HANDLE"},
	500: {name: "NOT_FOUND"},
	600: {name: "NOT_READY"},
	700: {"ILLEGAL_ADDRESS", "the test's kernel failed: illegal address", remedyKernel, false},
	701: {"LAUNCH_OUT_OF_RESOURCES", "the test's kernel could not be launched", remedyKernel, false},
	702: {"LAUNCH_TIMEOUT", "the test's kernel was cut off by the watchdog", remedyKernel, false},
	709: {name: "CONTEXT_IS_DESTROYED", remedy: remedyKernel},
	710: {name: "ASSERT", remedy: remedyKernel},
	714: {"HARDWARE_STACK_ERROR", "the test's kernel failed: stack error in hardware", remedyKernel, false},
	715: {"ILLEGAL_INSTRUCTION", "the test's kernel failed: illegal instruction", remedyKernel, false},
	716: {"MISALIGNED_ADDRESS", "the test's kernel failed: misaligned address", remedyKernel, false},
	717: {"INVALID_ADDRESS_SPACE", "the test's kernel failed: invalid address space", remedyKernel, false},
	718: {"INVALID_PC", "the test's kernel failed: invalid program counter", remedyKernel, false},
	719: {"LAUNCH_FAILED", "the test's kernel failed", remedyKernel, false},
	800: {name: "NOT_PERMITTED", remedy: remedyAccess},
	801: {name: "NOT_SUPPORTED"},
	802: {"SYSTEM_NOT_READY", "the NVSwitch fabric is not ready", remedyFabric, false},
	803: {"SYSTEM_DRIVER_MISMATCH", "driver library and kernel module have different versions", remedyVersion, false},
	804: {"COMPAT_NOT_SUPPORTED_ON_DEVICE", "the compatibility package does not support this GPU", "Take /usr/local/cuda/compat out of LD_LIBRARY_PATH. " + remedyDriver, false},
	805: {"MPS_CONNECTION_FAILED", "no connection to the MPS server", remedyMPS, false},
	806: {"MPS_RPC_FAILURE", "the MPS server did not answer", remedyMPS, false},
	807: {"MPS_SERVER_NOT_READY", "the MPS server is not ready", remedyMPS, false},
	808: {"MPS_MAX_CLIENTS_REACHED", "the MPS server has too many clients", remedyMPS, true},
	809: {"MPS_MAX_CONNECTIONS_REACHED", "the MPS server has too many connections", remedyMPS, true},
	810: {"MPS_CLIENT_TERMINATED", "the MPS server ended this client", remedyMPS, false},
	916: {name: "KEY_ROTATION"},
	999: {"UNKNOWN", "CUDA cannot use the GPU, and says no more", "/dev/nvidia-uvm is missing or stale: modprobe nvidia_uvm on the host, reload it after a suspend. Else look for Xid in dmesg.", false},
}

// nvmlCodes are the codes of the management library, nvmlReturn_t.
var nvmlCodes = map[int]code{
	1:   {name: "UNINITIALIZED"},
	2:   {name: "INVALID_ARGUMENT"},
	3:   {name: "NOT_SUPPORTED"},
	4:   {"NO_PERMISSION", "access to the GPU is blocked", remedyAccess, false},
	6:   {name: "NOT_FOUND"},
	7:   {name: "INSUFFICIENT_SIZE"},
	8:   {"INSUFFICIENT_POWER", "a power cable is not connected", remedyPower, false},
	9:   {"DRIVER_NOT_LOADED", "the kernel's NVIDIA driver is not loaded or out of reach", remedyModule, false},
	10:  {name: "TIMEOUT"},
	11:  {"IRQ_ISSUE", "the GPU's interrupts do not arrive", "Look at IRQ, IOMMU and BIOS settings of the host.", false},
	12:  {"LIBRARY_NOT_FOUND", "libnvidia-ml.so.1 is not in this container", remedyUtility, false},
	13:  {name: "FUNCTION_NOT_FOUND"},
	14:  {"CORRUPTED_INFOROM", "the GPU's InfoROM is corrupt", "The board needs a repair: take it out of service.", false},
	15:  {"GPU_IS_LOST", "it has fallen off the bus", remedyBus, false},
	16:  {"RESET_REQUIRED", "it needs a reset", "Reset it: nvidia-smi --gpu-reset, or reboot.", false},
	17:  {"OPERATING_SYSTEM", "access to the GPU is blocked by the operating system", remedyAccess, false},
	18:  {"LIB_RM_VERSION_MISMATCH", "driver library and kernel module have different versions", remedyVersion, false},
	19:  {name: "IN_USE"},
	20:  {name: "MEMORY"},
	21:  {name: "NO_DATA"},
	25:  {name: "ARGUMENT_VERSION_MISMATCH"},
	26:  {name: "DEPRECATED"},
	27:  {name: "NOT_READY"},
	28:  {"GPU_NOT_FOUND", "it is gone", remedyBus, false},
	29:  {name: "INVALID_STATE"},
	999: {"UNKNOWN", "the GPU is out of reach: it has fallen off the bus, or access is blocked", remedyBus + " If other GPUs of this container are gone too: " + remedyAccess, false},
}

// The codes that a verdict looks at.
const (
	cudaOutOfMemory   = 2
	cudaNoDevice      = 100
	cudaInvalidPTX    = 218
	cudaJITDisabled   = 223
	cudaNotReady      = 802
	nvmlIsLost        = 15
	nvmlResetRequired = 16
)

const (
	cudaPrefix = "CUDA_ERROR_"
	nvmlPrefix = "NVML_ERROR_"
)

// failed is the finding for a step that failed with a code.
func failed(unit string, line wire.Line) finding {
	table, prefix := cudaCodes, cudaPrefix
	if isNVML(line.Step) {
		table, prefix = nvmlCodes, nvmlPrefix
	}
	if line.Code == 0 || line.Step == wire.CUDALoad && line.Code == wire.CodeNoLibrary { // no answer of the driver's
		return finding{status: checks.Fail, unit: unit, text: failure(line), remedy: remedyOf(line.Step)}
	}
	c, known := table[line.Code]
	name := "code"
	if known {
		name = prefix + c.name
	}
	f := finding{status: checks.Fail, unit: unit, text: c.text, remedy: c.remedy, taken: c.taken}
	if f.text == "" {
		f.text = doing(line.Step) + " failed"
	}
	f.text += fmt.Sprintf(" (%s, %d", name, line.Code)
	if line.Call != "" {
		f.text += ", from " + line.Call
	}
	f.text += ")"
	if line.Code == cudaInvalidPTX && line.Detail != "" {
		f.text += ": " + line.Detail
	}
	if f.remedy == "" {
		f.remedy = remedyUnknown
	}
	return f
}

func failure(line wire.Line) string {
	switch {
	case line.Step == wire.CUDALoad && line.Code == wire.CodeNoLibrary:
		return "the CUDA driver library, libcuda.so.1, is not in this container"
	case line.Step == wire.CUDALoad:
		return "the CUDA driver library, libcuda.so.1, cannot be used: " + line.Detail
	}
	return doing(line.Step) + " failed: " + line.Detail
}

func remedyOf(step wire.Step) string {
	if step == wire.CUDALoad {
		return remedyCompute
	}
	return remedyUnknown
}
