// The questions about a GPU's health. Each value has a name; the normal one is a healthy GPU's.

// ASK defines a function that answers with one number.
#define ASK(function, type, name, normal)                \
  FAKE_API int function(struct device *device, type *v) { \
    ON_DEVICE(device);                                   \
    *v = (type)fake_value(gpu, name, normal);            \
    return SUCCESS;                                      \
  }

ASK(nvmlDeviceGetPersistenceMode, int, "persistence", 1)
ASK(nvmlDeviceGetCurrPcieLinkWidth, unsigned, "pcie_width", 16)
ASK(nvmlDeviceGetMaxPcieLinkWidth, unsigned, "pcie_max_width", 16)
ASK(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, "pcie_gen", 5)
ASK(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, "pcie_max_gen", 5)
ASK(nvmlDeviceGetComputeMode, int, "compute_mode", 0)
ASK(nvmlDeviceGetRetiredPagesPendingStatus, int, "pages_pending", 0)
ASK(nvmlDeviceGetCurrentClocksThrottleReasons, uint64_t, "throttle", 1)
#ifndef OLD
ASK(nvmlDeviceGetCurrentClocksEventReasons, uint64_t, "throttle", 1)
#endif

FAKE_API int nvmlSystemGetCudaDriverVersion_v2(int *version) {
  FAKE_CALL(FAKE_NO_GPU);
  *version = (int)fake_value(FAKE_NO_GPU, "cuda", 12040);
  return SUCCESS;
}

FAKE_API int nvmlDeviceGetPciInfo_v3(struct device *device, struct pci *pci) {
  ON_DEVICE(device);
  *pci = (struct pci){.bus = FAKE_PCI_BUS + gpu};
  snprintf(pci->legacy, sizeof pci->legacy, "0000:%02X:00.0", pci->bus);
  snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", pci->bus);
  return SUCCESS;
}

FAKE_API int nvmlDeviceGetMemoryInfo(struct device *device, struct memory *m) {
  ON_DEVICE(device);
  m->total = (uint64_t)fake_memory_total(gpu) << 20;
  m->free = (uint64_t)fake_memory_free(gpu) << 20;
  m->used = m->total - m->free;
  return SUCCESS;
}

FAKE_API int nvmlDeviceGetEccMode(struct device *device, int *current, int *pending) {
  ON_DEVICE(device);
  *current = (int)fake_value(gpu, "ecc_mode", 1);
  *pending = (int)fake_value(gpu, "ecc_mode_pending", *current);
  return SUCCESS;
}

FAKE_API int nvmlDeviceGetTotalEccErrors(struct device *device, int type, int counter, uint64_t *n) {
  ON_DEVICE(device);
  if (type != 1 || counter < 0 || counter > 1) return INVALID_ARGUMENT; // uncorrected ones are what matters
  *n = fake_value(gpu, counter == 0 ? "ecc_volatile" : "ecc_aggregate", 0);
  return SUCCESS;
}

FAKE_API int nvmlDeviceGetRemappedRows(struct device *device, unsigned *corrected, unsigned *uncorrected,
                                       unsigned *pending, unsigned *failed) {
  ON_DEVICE(device);
  *corrected = (unsigned)fake_value(gpu, "rows_corr", 0);
  *uncorrected = (unsigned)fake_value(gpu, "rows_unc", 0);
  *pending = (unsigned)fake_value(gpu, "rows_pending", 0);
  *failed = (unsigned)fake_value(gpu, "rows_failed", 0);
  return SUCCESS;
}

FAKE_API int nvmlDeviceGetRetiredPages(struct device *device, int cause, unsigned *count, uint64_t *addresses) {
  ON_DEVICE(device);
  unsigned pages = (unsigned)fake_value(gpu, cause == 0 ? "pages_sbe" : "pages_dbe", 0);
  if (*count < pages) return INSUFFICIENT_SIZE;
  for (unsigned i = 0; i < pages; i++) addresses[i] = 0x1000 * i;
  *count = pages;
  return SUCCESS;
}

FAKE_API int nvmlDeviceGetTemperature(struct device *device, int sensor, unsigned *degrees) {
  ON_DEVICE(device);
  if (sensor != 0) return INVALID_ARGUMENT;
  *degrees = (unsigned)fake_value(gpu, "temp", 40);
  return SUCCESS;
}

FAKE_API int nvmlDeviceGetTemperatureThreshold(struct device *device, int threshold, unsigned *degrees) {
  ON_DEVICE(device);
  if (threshold != 1) return INVALID_ARGUMENT;
  *degrees = (unsigned)fake_value(gpu, "slowdown", 87);
  return SUCCESS;
}

FAKE_API int nvmlDeviceGetFieldValues(struct device *device, int count, struct field *fields) {
  ON_DEVICE(device);
  for (int i = 0; i < count; i++) {
    fields[i].answer = INVALID_ARGUMENT;
#ifndef OLD
    if (fields[i].id != 230) continue;
    fields[i].type = 1; // an unsigned int
    fields[i].answer = (int)fake_value(gpu, "recovery_answer", SUCCESS);
    memset(&fields[i].value, 0xff, sizeof fields[i].value); // only the int is set
    unsigned action = (unsigned)fake_value(gpu, "recovery", 0);
    memcpy(&fields[i].value, &action, sizeof action);
#endif
  }
  return SUCCESS;
}

FAKE_API int nvmlDeviceGetGpuFabricInfo(struct device *device, struct fabric_v1 *info) {
  ON_DEVICE(device);
  info->state = (uint8_t)fake_value(gpu, "fabric_state", 0);
  info->status = (int)fake_value(gpu, "fabric_status", 0);
  return SUCCESS;
}

#ifndef OLD
FAKE_API int nvmlDeviceGetGpuFabricInfoV(struct device *device, struct fabric *info) {
  ON_DEVICE(device);
  long long newest = fake_value(gpu, "fabric_version", 3);
  unsigned sizes[] = {[2] = 36, [3] = 40}, version = info->version >> 24;
  if (version < 2 || version > newest) return ARGUMENT_VERSION_MISMATCH;
  if ((info->version & 0xffffff) != sizes[version]) return ARGUMENT_VERSION_MISMATCH;
  info->state = (uint8_t)fake_value(gpu, "fabric_state", 0);
  info->status = (int)fake_value(gpu, "fabric_status", 0);
  if (version == 3) info->summary = (uint8_t)fake_value(gpu, "fabric_summary", 0);
  return SUCCESS;
}
#endif

FAKE_API int nvmlDeviceGetMigMode(struct device *device, unsigned *current, unsigned *pending) {
  ON_DEVICE(device);
  *current = fake_slices(gpu) >= 0;
  *pending = (unsigned)fake_value(gpu, "mig_pending", *current);
  return SUCCESS;
}

FAKE_API int nvmlDeviceGetMaxMigDeviceCount(struct device *device, unsigned *count) {
  ON_DEVICE(device);
  *count = SLICES;
  return SUCCESS;
}

FAKE_API int nvmlDeviceGetMigDeviceHandleByIndex(struct device *device, unsigned index, struct device **slice) {
  ON_DEVICE(device);
  if (index >= SLICES) return INVALID_ARGUMENT;
  if ((int)index >= fake_slices(gpu)) return NOT_FOUND;
  *slice = &slices[gpu][index];
  return SUCCESS;
}
