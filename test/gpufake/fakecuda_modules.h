// Modules, launches and events.

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
