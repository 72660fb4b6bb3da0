//go:build ignore

// A stand-in for libcuda.so.1: devices, contexts, memory, modules. -DSTUB makes it the library of a toolkit's stubs
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

FAKE_API int cuMemGetInfo_v2(size_t *free, size_t *total) {
  IN_CONTEXT;
  *total = (size_t)fake_memory_total(current->gpu) << 20;
  *free = ((size_t)fake_memory_free(current->gpu) << 20) - current->used;
  return SUCCESS;
}

FAKE_API int cuMemAlloc_v2(deviceptr *at, size_t bytes) {
  IN_CONTEXT;
  if (bytes == 0) return INVALID_VALUE;
  if (current->used + bytes > (size_t)fake_memory_free(current->gpu) << 20) return OUT_OF_MEMORY;
  for (int i = 0; i < ALLOCATIONS; i++) {
    struct allocation *a = &current->live[i];
    if (a->host != NULL) continue;
    *a = (struct allocation){.at = current->next, .bytes = bytes, .host = malloc(bytes)};
    if (a->host == NULL) return OUT_OF_MEMORY;
    memset(a->host, 0xa5, bytes); // what stands in fresh memory is nobody's business
    current->next += (bytes + 0xffff) & ~0xffffull;
    current->used += bytes;
    *at = a->at;
    return SUCCESS;
  }
  return OUT_OF_MEMORY;
}

FAKE_API int cuMemFree_v2(deviceptr at) {
  IN_CONTEXT;
  for (int i = 0; i < ALLOCATIONS; i++) {
    struct allocation *a = &current->live[i];
    if (a->host == NULL || a->at != at) continue;
    free(a->host);
    current->used -= a->bytes;
    *a = (struct allocation){0};
    return SUCCESS;
  }
  return INVALID_VALUE;
}

FAKE_API int cuMemcpyHtoD_v2(deviceptr to, const void *from, size_t bytes) {
  IN_CONTEXT;
  if (current->pending != SUCCESS) return synchronize(current);
  uint8_t *memory = memory_at(current, to, bytes);
  if (memory == NULL) return INVALID_VALUE;
  memcpy(memory, from, bytes);
  writes++;
  int flip = (int)fake_value(current->gpu, "flip_bit", 0); // so many bits of one word
  for (int i = 0; bytes >= 1024 && i < flip; i++) memory[bytes / 2] ^= 1 << i;
  return SUCCESS;
}

FAKE_API int cuMemcpyDtoH_v2(void *to, deviceptr from, size_t bytes) {
  IN_CONTEXT;
  if (current->pending != SUCCESS) return synchronize(current);
  uint8_t *memory = memory_at(current, from, bytes);
  if (memory == NULL) return INVALID_VALUE;
  memcpy(to, memory, bytes);
  return SUCCESS;
}

// reject writes the JIT's words into the log that the options name: 5 is its buffer, 6 its size.
static int reject(const char *why, unsigned count, const int *options, void **values) {
  char *log = NULL;
  size_t size = 0;
  for (unsigned i = 0; i < count; i++) {
    if (options[i] == 5) log = values[i];
    if (options[i] == 6) size = (uint32_t)(uintptr_t)values[i];
  }
  if (log != NULL && size > 0) snprintf(log, size, "ptxas fatal   : %s", why);
  return INVALID_PTX;
}

FAKE_API int cuModuleLoadDataEx(struct module **module, const char *ptx, unsigned count, int *options, void **values) {
  int answer = enter(__func__, current);
  if (answer == INVALID_PTX) return reject("Unresolved extern function 'nowhere'", count, options, values);
  if (answer != SUCCESS) return answer;
  if (current == NULL || !current->retained) return INVALID_CONTEXT;
  if (strstr(ptx, ".version") == NULL) return reject("Missing .version directive", count, options, values);
  if (strstr(ptx, ".target sm_") == NULL) return reject("Missing .target directive", count, options, values);
  if (strstr(ptx, ".entry") == NULL) return reject("No entry", count, options, values);
  *module = malloc(sizeof **module);
  **module = (struct module){current, strdup(ptx)};
  current->modules++;
  return SUCCESS;
}

FAKE_API int cuModuleUnload(struct module *module) {
  IN_CONTEXT;
  if (module->owner != current) return INVALID_HANDLE;
  module->owner = NULL; // a second unload is an invalid handle
  free(module->ptx);
  current->modules--;
  return SUCCESS;
}

FAKE_API int cuModuleGetFunction(struct function **function, struct module *module, const char *name) {
  IN_CONTEXT;
  if (module->owner != current) return INVALID_HANDLE;
  char entry[96];
  snprintf(entry, sizeof entry, ".entry %s(", name);
  if (strstr(module->ptx, entry) == NULL || kernel_of(name) == 0) return NOT_FOUND;
  *function = malloc(sizeof **function);
  **function = (struct function){current, kernel_of(name)};
  return SUCCESS;
}

FAKE_API int cuLaunchKernel(struct function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                            unsigned bz, unsigned shared, void *stream, void **params, void **extra) {
  IN_CONTEXT;
  if (function->owner != current) return INVALID_HANDLE;
  if (shared != 0 || stream != NULL || params == NULL || extra != NULL) return INVALID_VALUE;
  struct launch l = {{gx, gy, gz}, {bx, by, bz}, params};
  return run_kernel(current, function->kernel, &l);
}

FAKE_API int cuEventCreate(struct event **event, unsigned flags) {
  IN_CONTEXT;
  if (flags != 0) return INVALID_VALUE;
  *event = malloc(sizeof **event);
  **event = (struct event){.owner = current};
  current->events++;
  return SUCCESS;
}

FAKE_API int cuEventRecord(struct event *event, void *stream) {
  IN_CONTEXT;
  if (event->owner != current || stream != NULL) return INVALID_HANDLE;
  event->recorded = 1;
  event->at = current->clock;
  return SUCCESS;
}

FAKE_API int cuEventSynchronize(struct event *event) {
  IN_CONTEXT;
  if (event->owner != current) return INVALID_HANDLE;
  return synchronize(current);
}

FAKE_API int cuEventElapsedTime(float *ms, struct event *from, struct event *to) {
  IN_CONTEXT;
  if (from->owner != current || to->owner != current) return INVALID_HANDLE;
  if (!from->recorded || !to->recorded) return INVALID_HANDLE;
  *ms = (float)((to->at - from->at) / 1000);
  return SUCCESS;
}

FAKE_API int cuEventDestroy_v2(struct event *event) {
  IN_CONTEXT;
  if (event->owner != current) return INVALID_HANDLE;
  event->owner = NULL;
  current->events--;
  return SUCCESS;
}

FAKE_API int cuDeviceCanAccessPeer(int *can, int device, int peer) {
  ON_DEVICE(device);
  struct device *p = device_of(peer);
  if (p == NULL) return INVALID_DEVICE;
  *can = p != d && fake_value(d->gpu, "p2p", 1) && fake_value(p->gpu, "p2p", 1);
  return SUCCESS;
}

FAKE_API int cuCtxEnablePeerAccess(struct device *peer, unsigned flags) {
  IN_CONTEXT;
  int can = 0;
  if (flags != 0 || !peer->retained) return INVALID_VALUE;
  cuDeviceCanAccessPeer(&can, current - devices, peer - devices);
  if (!can) return PEER_UNSUPPORTED;
  uint64_t bit = 1ull << (peer - devices);
  if (current->peers & bit) return PEER_ENABLED;
  current->peers |= bit;
  return SUCCESS;
}

FAKE_API int cuMemcpyPeer(deviceptr to, struct device *to_context, deviceptr from, struct device *from_context, size_t bytes) {
  ENTER(from_context);
  if (!to_context->retained || !from_context->retained) return INVALID_CONTEXT;
  uint8_t *source = memory_at(from_context, from, bytes), *target = memory_at(to_context, to, bytes);
  if (source == NULL || target == NULL) return INVALID_VALUE;
  memcpy(target, source, bytes);
  writes++;
  if (fake_value(from_context->gpu, "p2p_corrupt", 0)) memset(target + bytes / 2, 0, 64);
  return SUCCESS;
}
