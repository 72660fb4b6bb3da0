package worker

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
)

func TestSticky(t *testing.T) {
	raisedBy := func(class, message, traceback string) string {
		return protocol.ErrorInfo{Type: "<class '" + class + "'>", Message: message, Traceback: traceback}.String()
	}
	const torchHint = "\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect." +
		"\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
	const illegal, assert, launch, ecc = "an illegal memory access was encountered", "device-side assert triggered",
		"unspecified launch failure", "uncorrectable ECC error encountered"
	tests := []struct{ name, failure, want string }{
		{"PyTorch, assert", raisedBy("RuntimeError", "CUDA error: "+assert+torchHint, ""), assert},
		{"PyTorch, illegal access", "CUDA error: " + illegal + torchHint, illegal},
		{"PyTorch 2.8", raisedBy("torch.AcceleratorError", "CUDA error: "+illegal+"\nSearch for `cudaErrorIllegalAddress' in https://docs.nvidia.com/cuda for more information."+torchHint, ""), illegal},
		{"PyTorch, launch failure", "CUDA error: " + launch, launch},
		{"PyTorch, ECC", "CUDA error: " + ecc, ecc},
		{"PyTorch, misaligned", "CUDA error: misaligned address", "misaligned address"},
		{"PyTorch, illegal instruction", "RuntimeError: CUDA error: an illegal instruction was encountered", "an illegal instruction was encountered"},
		{"PyTorch, watchdog", "CUDA error: the launch timed out and was terminated", "the launch timed out and was terminated"},
		{"PyTorch, from C++", "CUDA error: " + assert + "\nException raised from c10_cuda_check_implementation at ../c10/cuda/CUDAException.cpp:43 (most recent call first):", assert},
		{"told by the handler", "Generation failed: CUDA error: " + assert, assert},
		{"told by the handler, with an apostrophe", "Couldn't finish the image: CUDA error: " + assert, assert},
		{"wrapped in another exception", raisedBy("RuntimeError", "inference failed", "Traceback (most recent call last):\n  File \"h.py\", line 3, in run\n    model(x)\n"+
			"RuntimeError: CUDA error: "+illegal+"\n\nThe above exception was the direct cause of the following exception:\n\nRuntimeError: inference failed\n"), illegal},
		{"CuPy, runtime", "cudaErrorIllegalAddress: " + illegal, "cudaErrorIllegalAddress"},
		{"CuPy, launch", raisedBy("cupy_backends.cuda.api.runtime.CUDARuntimeError", "cudaErrorLaunchFailure: "+launch, ""), "cudaErrorLaunchFailure"},
		{"CuPy, driver", raisedBy("cupy_backends.cuda.api.driver.CUDADriverError", "CUDA_ERROR_ILLEGAL_ADDRESS: "+illegal, ""), "CUDA_ERROR_ILLEGAL_ADDRESS"},
		{"JAX", raisedBy("jaxlib.xla_extension.XlaRuntimeError", "INTERNAL: Failed to synchronize: CUDA_ERROR_LAUNCH_FAILED: "+launch, ""), "CUDA_ERROR_LAUNCH_FAILED"},
		{"JAX, ECC", "jax.errors.JaxRuntimeError: INTERNAL: CUDA error: Failed to memcpy: CUDA_ERROR_ECC_UNCORRECTABLE: " + ecc, "CUDA_ERROR_ECC_UNCORRECTABLE"},
		{"TensorFlow", raisedBy("tensorflow.python.framework.errors_impl.InternalError", "Failed to copy input tensor from GPU to CPU: could not synchronize CUDA stream: CUDA_ERROR_ILLEGAL_ADDRESS: "+illegal, ""), "CUDA_ERROR_ILLEGAL_ADDRESS"},
		{"onnxruntime", raisedBy("onnxruntime.capi.onnxruntime_pybind11_state.Fail", "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running Conv node. Name:'/conv1/Conv' Status Message: CUDA failure 700: "+illegal+" ; GPU=0 ; hostname=h ; file=cuda_call.cc ; line=10 ; expr=cudaStreamSynchronize(stream);", ""), illegal},
		{"onnxruntime, launch", "CUDA failure 719: " + launch + " ; GPU=0", launch},
		{"Triton", "RuntimeError: Triton Error [CUDA]: " + illegal, illegal},
		{"Numba", "numba.cuda.cudadrv.driver.CudaAPIError: [700] Call to cuMemcpyDtoH results in CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_ILLEGAL_ADDRESS"},
		{"PyCUDA", "pycuda._driver.LaunchError: cuCtxSynchronize failed: " + launch, launch},
		{"TensorRT", "[executionContext.cpp::enqueueInternal::330] Error Code 1: Cuda Runtime (" + illegal + ")", illegal},
		{"llama.cpp", "CUDA error: " + illegal + "\n  current device: 0, in function ggml_backend_cuda_synchronize", illegal},
		{"in Windows lines", "oh\r\nCUDA error: " + assert + "\r\n", assert},

		{"nothing", "", ""},
		{"PyTorch, out of memory", raisedBy("torch.OutOfMemoryError", "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 23.69 GiB", ""), ""},
		{"CUDA, out of memory", "RuntimeError: CUDA error: out of memory" + torchHint, ""},
		{"CuPy, out of memory", "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes", ""},
		{"driver, out of memory", "CUDA_ERROR_OUT_OF_MEMORY: out of memory", ""},
		{"onnxruntime, out of memory", "CUDA failure 2: out of memory ; GPU=0", ""},
		{"Triton, out of memory", "Triton Error [CUDA]: out of memory", ""},
		{"JAX, out of memory", "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 123 bytes.", ""},
		{"no kernel for this GPU", "CUDA error: no kernel image is available for execution on the device", ""},
		{"wrong device", "CUDA error: invalid device ordinal", ""},
		{"wrong argument", "CUDA error: invalid argument", ""},
		{"busy", "CUDA error: all CUDA-capable devices are busy or unavailable", ""},
		{"fork", "CUDA error: initialization error", ""},
		{"cuBLAS without a handle", "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`", ""},
		{"cuBLAS without memory", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", ""},
		{"the hint alone", "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.", ""},
		{"an assertion of Python", raisedBy("AssertionError", "device-side", ""), ""},
		{"ECC in passing", "ECC error counter: 0", ""},
		{"C's own words", "OSError: unspecified launch failure of the renderer", ""},
		{"misaligned, elsewhere", "ValueError: misaligned address in the PDF", ""},
		{"what a client wrote, quoted", `ValueError: unknown style 'CUDA error: device-side assert triggered'`, ""},
		{"what a client wrote, as a Python text", `KeyError: "CUDA_ERROR_ILLEGAL_ADDRESS"`, ""},
		{"source in a traceback", raisedBy("ValueError", "no", "Traceback (most recent call last):\n  File \"h.py\", line 3, in run\n    if \"x\" in str(e) or e.code == cudaErrorIllegalAddress:\nValueError: no\n"), ""},
		{"lines that the job printed", strings.TrimSuffix(raisedBy("ValueError", "no", ""), "}") + `,"logs":["CUDA error: ` + assert + `"]}`, ""},
		{"the end of a long traceback", raisedBy("RuntimeError", "no", strings.Repeat("ValueError: x\n", 10_000)+"RuntimeError: CUDA error: "+ecc+"\n"), ecc},
		{"part of a longer name", "my_cudaErrorAssertions: 3", ""},
		{"JSON of another kind", `{"code":"E_CUDA","hint":"CUDA error: device-side assert triggered"}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, sticky(tt.failure)) })
	}
}

func FuzzSticky(f *testing.F) {
	for _, seed := range []string{"CUDA error: device-side assert triggered", `{"error_type":"x","error_traceback":"\n a"}`, "it's 'CUDA_ERROR_ASSERT", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, failure string) {
		found := sticky(failure)
		if found != "" && !strings.Contains(failure, found) && !strings.Contains(failure, `\`) {
			t.Errorf("%q is not in %q", found, failure)
		}
	})
}
