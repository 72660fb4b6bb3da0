// Memory: of one device, and between two.

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
