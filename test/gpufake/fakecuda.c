//go:build ignore

// A stand-in for libcuda.so.1: devices and contexts here, the rest beside. -DSTUB makes it the library of a toolkit's stubs
// folder, -DOLD one without the newer functions.
#include "fake.h"
#include "fakecuda_state.h"
#include "fakecuda_kernels.h"

FAKE_API int cuDriverGetVersion(int *version) {
  int answer = enter(__func__, NULL);
  *version = (int)fake_value(FAKE_NO_GPU, "cuda", 12040);
  return answer;
}

FAKE_API int cuInit(unsigned flags) {
  int answer = enter(__func__, NULL);
  if (answer != SUCCESS) return answer;
  if (flags != 0) return INVALID_VALUE;
  find_devices();
  return device_count == 0 ? NO_DEVICE : SUCCESS;
}

FAKE_API int cuGetErrorName(int code, const char **name) {
  static char text[64];
  int answer = enter(__func__, NULL);
  if (answer != SUCCESS) return answer;
  if (code == OUT_OF_MEMORY) *name = "CUDA_ERROR_OUT_OF_MEMORY";
  else if (code == ILLEGAL_ADDRESS) *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
  else snprintf(text, sizeof text, "CUDA_ERROR_%d", code), *name = text;
  return SUCCESS;
}

FAKE_API int cuDeviceGetCount(int *count) {
  ENTER(NULL);
  *count = device_count;
  return SUCCESS;
}

FAKE_API int cuDeviceGet(int *device, int ordinal) {
  ENTER(device_of(ordinal));
  if (device_of(ordinal) == NULL) return INVALID_DEVICE;
  *device = ordinal;
  return SUCCESS;
}

// ON_DEVICE begins a call that asks something of a device, without a context.
#define ON_DEVICE(ordinal)                    \
  struct device *d = device_of(ordinal);      \
  ENTER(d);                                   \
  if (d == NULL) return INVALID_DEVICE

FAKE_API int cuDeviceGetName(char *name, int size, int device) {
  ON_DEVICE(device);
  char base[64];
  fake_text(d->gpu, "name", "NVIDIA Fake 100", base, sizeof base);
  snprintf(name, size, d->slice < 0 ? "%s" : "%s MIG 1g.10gb", base);
  return SUCCESS;
}

FAKE_API int cuDeviceGetPCIBusId(char *id, int size, int device) {
  ON_DEVICE(device);
  snprintf(id, size, "0000:%02X:00.0", FAKE_PCI_BUS + d->gpu);
  return SUCCESS;
}

FAKE_API int cuDeviceGetUuid(uint8_t *uuid, int device) {
  ON_DEVICE(device);
  fake_uuid(d->gpu, -1, uuid);
  return SUCCESS;
}

#ifndef OLD
FAKE_API int cuDeviceGetUuid_v2(uint8_t *uuid, int device) {
  ON_DEVICE(device);
  fake_uuid(d->gpu, d->slice, uuid);
  return SUCCESS;
}
#endif

FAKE_API int cuDeviceGetAttribute(int *value, int attribute, int device) {
  ON_DEVICE(device);
  switch (attribute) {
    case 20: *value = (int)fake_value(d->gpu, "compute_mode", 0); return SUCCESS;
    case 75: *value = (int)fake_value(d->gpu, "cc_major", 9); return SUCCESS;
    case 76: *value = (int)fake_value(d->gpu, "cc_minor", 0); return SUCCESS;
  }
  return INVALID_VALUE;
}

FAKE_API int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  ON_DEVICE(device);
  *bytes = (size_t)fake_memory_total(d->gpu) << 20;
  return SUCCESS;
}

FAKE_API int cuDevicePrimaryCtxRetain(struct device **context, int device) {
  ON_DEVICE(device);
  if (fake_value(d->gpu, "compute_mode", 0) == 2) return UNKNOWN; // prohibited
  d->retained++;
  *context = d;
  return SUCCESS;
}

static void report_leaks(struct device *d) {
  int live = 0;
  for (int i = 0; i < ALLOCATIONS; i++) live += d->live[i].host != NULL;
  if (live + d->modules + d->events > 0)
    fake_trace("LEAK %d: %d allocations, %d modules, %d events", d->gpu, live, d->modules, d->events);
}

FAKE_API int cuDevicePrimaryCtxRelease_v2(int device) {
  ON_DEVICE(device);
  if (d->retained == 0) return INVALID_CONTEXT;
  if (--d->retained == 0) report_leaks(d);
  return SUCCESS;
}

FAKE_API int cuCtxSetCurrent(struct device *context) {
  ENTER(context);
  if (context != NULL && !context->retained) return INVALID_CONTEXT;
  current = context;
  return SUCCESS;
}

FAKE_API int cuCtxSynchronize(void) {
  IN_CONTEXT;
  return synchronize(current);
}

#include "fakecuda_memory.h"
#include "fakecuda_modules.h"
