// Events: of each registered GPU that has the value xid one is told, or xid_times of them, from the wait on that
// xid_wait counts to.
static int event_set, events_wanted[GPUS], events_told[GPUS], waits;

FAKE_API int nvmlEventSetCreate(int **set) {
  FAKE_CALL(FAKE_NO_GPU);
  *set = &event_set;
  return SUCCESS;
}

FAKE_API int nvmlDeviceGetSupportedEventTypes(struct device *device, uint64_t *types) {
  ON_DEVICE(device);
  *types = fake_value(gpu, "event_types", 0x1b);
  return SUCCESS;
}

FAKE_API int nvmlDeviceRegisterEvents(struct device *device, uint64_t types, int *set) {
  ON_DEVICE(device);
  if (set != &event_set) return INVALID_ARGUMENT;
  if (types & ~(uint64_t)fake_value(gpu, "event_types", 0x1b)) return NOT_SUPPORTED;
  events_wanted[gpu] = (int)types;
  return SUCCESS;
}

FAKE_API int nvmlEventSetWait_v2(int *set, struct event *event, unsigned timeout_ms) {
  FAKE_CALL(FAKE_NO_GPU);
  if (set != &event_set) return INVALID_ARGUMENT;
  waits++;
  for (int gpu = 0; gpu < fake_count(); gpu++) {
    int xid = (int)fake_value(gpu, "xid", 0);
    if (xid == 0 || events_told[gpu] == fake_value(gpu, "xid_times", 1) || !(events_wanted[gpu] & 8)) continue;
    if (waits < fake_value(gpu, "xid_wait", 1)) continue;
    events_told[gpu]++;
    *event = (struct event){.device = &gpus[gpu], .type = 8, .data = xid};
    return SUCCESS;
  }
  fake_sleep(timeout_ms);
  return TIMEOUT;
}
