//go:build ignore

// A stand-in for libnvidia-ml.so.1. -DOLD makes it the library of a driver before 550, -DBARE one with nothing but the
// functions that every driver has.
#include "fake.h"
#include "fakenvml_types.h"

static int initialized;
static struct device gpus[GPUS], slices[GPUS][SLICES];

// ON_DEVICE begins a call that asks something of a device.
#define ON_DEVICE(device)                              \
  int gpu = gpu_of(device);                            \
  FAKE_CALL(gpu);                                      \
  if (!initialized) return UNINITIALIZED;              \
  if (gpu == FAKE_NO_GPU) return INVALID_ARGUMENT

static int gpu_of(struct device *d) {
  uintptr_t at = (uintptr_t)d, all = (uintptr_t)gpus, cut = (uintptr_t)slices;
  if (at >= all && at < all + sizeof gpus) return d->gpu;
  if (at >= cut && at < cut + sizeof slices) return d->gpu;
  return FAKE_NO_GPU;
}

FAKE_API const char *nvmlErrorString(int code) {
  for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++)
    if (words[i].code == code) return words[i].text;
  return "an unlisted error";
}

FAKE_API int nvmlInit_v2(void) {
  FAKE_CALL(FAKE_NO_GPU);
  if (fake_count() > GPUS) fake_broken("too many", "GPUs");
  for (int i = 0; i < GPUS; i++) {
    gpus[i] = (struct device){i, -1};
    for (int k = 0; k < SLICES; k++) slices[i][k] = (struct device){i, k};
  }
  initialized = 1;
  return SUCCESS;
}

FAKE_API int nvmlSystemGetDriverVersion(char *version, unsigned size) {
  FAKE_CALL(FAKE_NO_GPU);
  if (!initialized) return UNINITIALIZED;
  fake_text(FAKE_NO_GPU, "driver", "550.54.15", version, size);
  return SUCCESS;
}

FAKE_API int nvmlDeviceGetCount_v2(unsigned *count) {
  FAKE_CALL(FAKE_NO_GPU);
  if (!initialized) return UNINITIALIZED;
  *count = fake_count();
  return SUCCESS;
}

FAKE_API int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **device) {
  FAKE_CALL((int)index);
  if (!initialized) return UNINITIALIZED;
  if ((int)index >= fake_count()) return INVALID_ARGUMENT;
  *device = &gpus[index];
  return SUCCESS;
}

FAKE_API int nvmlDeviceGetName(struct device *device, char *name, unsigned size) {
  ON_DEVICE(device);
  fake_text(gpu, "name", "NVIDIA Fake 100", name, size);
  return SUCCESS;
}

FAKE_API int nvmlDeviceGetUUID(struct device *device, char *uuid, unsigned size) {
  ON_DEVICE(device);
  fake_uuid_text(gpu, device->slice, uuid, size);
  return SUCCESS;
}

#ifndef BARE
#include "fakenvml_health.h"
#include "fakenvml_events.h"
#endif
