// What the fake driver libraries share. The environment drives them:
//
//   FAKE_GPU_COUNT=4
//   FAKE_GPU_RULES='cuMemAlloc_v2@1=2;cuInit=802;cuMemcpyDtoH_v2@1#2=segv'
//       func[@gpu][#nth]=code|hang|abort|segv|exit:N|sleep:MS|fork
//   FAKE_GPU_VALUES='1.ecc_volatile=3;cuda=11040'
//       [gpu.]name=value; without a GPU it holds for all
//   FAKE_GPU_TRACE=FILE    every call, "func gpu"
//
// GPUs are counted as the machine has them, whatever CUDA_VISIBLE_DEVICES shows of them. Every exported function
// begins with FAKE_CALL, so any call can fail in any way.
#ifndef FAKE_H
#define FAKE_H

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FAKE_API __attribute__((visibility("default")))
#define FAKE_LOCAL static __attribute__((unused))

enum { FAKE_NO_GPU = -1, FAKE_RULES = 64, FAKE_PCI_BUS = 0x1a };

// FAKE_CALL traces the call that it stands in, and answers for it where a rule says so.
#define FAKE_CALL(gpu)                            \
  do {                                            \
    int fake_answer = fake_enter(__func__, gpu);  \
    if (fake_answer != 0) return fake_answer;     \
  } while (0)

FAKE_LOCAL void fake_broken(const char *what, const char *text) {
  fprintf(stderr, "fake GPU: %s: %s\n", what, text);
  abort(); // a test with a typo must not pass
}

FAKE_LOCAL void fake_trace(const char *format, ...) {
  const char *file = getenv("FAKE_GPU_TRACE");
  if (file == NULL) return;
  char line[256];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line - 1, format, args);
  va_end(args);
  line[n++] = '\n';
  int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0 || write(fd, line, n) != n) fake_broken("cannot trace to", file);
  close(fd);
}

FAKE_LOCAL int fake_count(void) {
  const char *count = getenv("FAKE_GPU_COUNT");
  return count == NULL ? 1 : atoi(count);
}

// fake_find returns the text behind "key=" in the values, and its length; NULL if it is not there.
FAKE_LOCAL const char *fake_find(const char *key, size_t *n) {
  const char *at = getenv("FAKE_GPU_VALUES");
  size_t len = strlen(key);
  while (at != NULL && *at != 0) {
    const char *end = strchrnul(at, ';');
    if (strncmp(at, key, len) == 0 && at[len] == '=') {
      *n = end - (at + len + 1);
      return at + len + 1;
    }
    at = *end == ';' ? end + 1 : end;
  }
  return NULL;
}

// fake_text copies a GPU's value as text.
FAKE_LOCAL void fake_text(int gpu, const char *name, const char *normal, char *out, size_t size) {
  char key[128];
  size_t n = 0;
  snprintf(key, sizeof key, "%d.%s", gpu, name);
  const char *found = fake_find(key, &n);
  if (found == NULL) found = fake_find(name, &n);
  if (found == NULL) found = normal, n = strlen(normal);
  snprintf(out, size, "%.*s", (int)n, found);
}

// fake_value is a GPU's value as a number.
FAKE_LOCAL long long fake_value(int gpu, const char *name, long long normal) {
  char text[32], *end;
  fake_text(gpu, name, "", text, sizeof text);
  if (text[0] == 0) return normal;
  long long v = strtoll(text, &end, 0);
  if (*end != 0) fake_broken("a value that is no number", text);
  return v;
}

// fake_uuid is the UUID of a GPU, or with slice >= 0 of one of its MIG devices.
FAKE_LOCAL void fake_uuid(int gpu, int slice, uint8_t uuid[16]) {
  static const uint8_t gpus[16] = {0x10, 0, 0, 0, 0xfa, 0xce, 0x40, 0, 0x80};
  memcpy(uuid, gpus, 16);
  uuid[3] = gpu;
  if (slice >= 0) uuid[0] = 0x20, uuid[15] = slice;
}

FAKE_LOCAL void fake_uuid_text(int gpu, int slice, char *out, size_t size) {
  uint8_t u[16];
  fake_uuid(gpu, slice, u);
  snprintf(out, size, "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
           slice >= 0 ? "MIG" : "GPU", u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12],
           u[13], u[14], u[15]);
}

// The memory of a GPU in MiB, small enough that a test may fill it.
FAKE_LOCAL long long fake_memory_total(int gpu) { return fake_value(gpu, "memory_total", 512); }
FAKE_LOCAL long long fake_memory_free(int gpu) { return fake_value(gpu, "memory_free", fake_memory_total(gpu) * 15 / 16); }

// fake_slices is how many MIG devices a GPU is cut into, -1 where MIG is off.
FAKE_LOCAL int fake_slices(int gpu) { return (int)fake_value(gpu, "mig", -1); }

FAKE_LOCAL void fake_sleep(long ms) {
  struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

// fake_fork leaves a process that holds every descriptor for a minute, unless a test ends it: the trace has its id.
FAKE_LOCAL void fake_fork(void) {
  pid_t pid = fork();
  if (pid < 0) fake_broken("cannot", "fork");
  if (pid > 0) {
    fake_trace("fork %d", (int)pid);
    return;
  }
  fake_sleep(60 * 1000);
  _exit(0);
}

FAKE_LOCAL int fake_act(const char *action) {
  char *end;
  long code = strtol(action, &end, 10);
  if (end != action && *end == 0) return (int)code;
  if (strcmp(action, "hang") == 0)
    for (;;) pause();
  if (strcmp(action, "abort") == 0) abort();
  if (strcmp(action, "segv") == 0) {
    volatile int *nowhere = NULL;
    *nowhere = 0;
  }
  if (strncmp(action, "exit:", 5) == 0) _exit(atoi(action + 5));
  if (strncmp(action, "sleep:", 6) == 0) return fake_sleep(atol(action + 6)), 0;
  if (strcmp(action, "fork") == 0) return fake_fork(), 0;
  fake_broken("a rule with an unknown action", action);
  return 0;
}

// fake_matches tells whether a rule's left side concerns a call; nth is 0 where the rule names no turn.
FAKE_LOCAL int fake_matches(const char *rule, const char *func, int gpu, int *nth) {
  size_t len = strcspn(rule, "@#=");
  *nth = 0;
  if (strlen(func) != len || strncmp(rule, func, len) != 0) return 0;
  const char *at = rule + len;
  if (*at == '@' && strtol(at + 1, (char **)&at, 10) != gpu) return 0;
  if (*at == '#') *nth = strtol(at + 1, (char **)&at, 10);
  if (*at != '=') fake_broken("a rule that makes no sense", rule);
  return 1;
}

// fake_enter traces a call and does what the first rule that concerns it says; 0 lets the call run.
FAKE_LOCAL int fake_enter(const char *func, int gpu) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static int seen[FAKE_RULES];
  fake_trace("%s %d", func, gpu);
  const char *rule = getenv("FAKE_GPU_RULES");
  for (int i = 0; rule != NULL && *rule != 0; i++) {
    if (i == FAKE_RULES) fake_broken("too many rules", rule);
    const char *end = strchrnul(rule, ';');
    int nth;
    if (fake_matches(rule, func, gpu, &nth)) {
      pthread_mutex_lock(&lock);
      int turn = ++seen[i];
      pthread_mutex_unlock(&lock);
      if (nth == 0 || nth == turn) {
        const char *action = strchr(rule, '=') + 1;
        char text[64];
        snprintf(text, sizeof text, "%.*s", (int)(end - action), action);
        return fake_act(text);
      }
    }
    rule = *end == ';' ? end + 1 : end;
  }
  return 0;
}

#endif
