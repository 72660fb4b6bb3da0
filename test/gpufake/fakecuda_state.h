// What the fake CUDA driver knows: the devices that this process may see, and what lives in their contexts.
enum {
  SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, STUB_LIBRARY = 34, NO_DEVICE = 100,
  INVALID_DEVICE = 101, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, PEER_UNSUPPORTED = 217, INVALID_PTX = 218,
  INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700, PEER_ENABLED = 704, UNKNOWN = 999,
};

enum { DEVICES = 64, ALLOCATIONS = 256 };

typedef uint64_t deviceptr;

struct allocation {
  deviceptr at;
  size_t bytes;
  uint8_t *host;
};

// device is also its primary context.
struct device {
  int gpu, slice; // slice is -1 for a whole GPU
  int retained;
  int sticky;  // after such an error every call in the context answers it
  int pending; // what a kernel did wrong, found at the next synchronizing call
  struct allocation live[ALLOCATIONS];
  uint64_t next;  // address of the next allocation
  size_t used;    // bytes
  int modules, events;
  int warm;       // a matrix product has run
  double clock;   // µs of work that kernels have done
  uint64_t peers; // bits of the devices whose memory is open to it
};

struct module { struct device *owner; char *ptx; };
struct function { struct device *owner; int kernel; };
struct event { struct device *owner; int recorded; double at; };

static struct device devices[DEVICES];
static int device_count = -1; // before cuInit
static __thread struct device *current; // as in the real driver, each thread has its own

static int is_sticky(int code) {
  static const int codes[] = {214, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911, 999};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    if (codes[i] == code) return 1;
  return 0;
}

// enter begins a call that concerns a device, or none.
static int enter(const char *func, struct device *d) {
  int code = fake_enter(func, d == NULL ? FAKE_NO_GPU : d->gpu);
#ifdef STUB
  return code != 0 ? code : STUB_LIBRARY;
#endif
  if (code == 0 && d != NULL) code = d->sticky;
  if (d != NULL && d->retained && is_sticky(code)) d->sticky = code;
  return code;
}

#define ENTER(d)                           \
  do {                                     \
    int answer = enter(__func__, d);       \
    if (answer != SUCCESS) return answer;  \
    if (device_count < 0) return NOT_INITIALIZED; \
  } while (0)

// IN_CONTEXT begins a call that works in the calling thread's context.
#define IN_CONTEXT                         \
  ENTER(current);                          \
  if (current == NULL || !current->retained) return INVALID_CONTEXT

// synchronize delivers what kernels did wrong.
static int synchronize(struct device *d) {
  if (d->pending != SUCCESS) d->sticky = d->pending;
  return d->pending;
}

static void show(int gpu, int slice) {
  if (device_count == DEVICES) fake_broken("too many", "devices");
  devices[device_count++] = (struct device){.gpu = gpu, .slice = slice, .next = (uint64_t)(device_count + 1) << 40};
}

static int shown(int gpu, int slice) {
  for (int i = 0; i < device_count; i++)
    if (devices[i].gpu == gpu && devices[i].slice == slice) return 1;
  return 0;
}

// show_gpu makes a whole GPU visible, or the first of its MIG devices; with MIG on and no device there is nothing.
static int show_gpu(int gpu) {
  if (gpu < 0 || gpu >= fake_count()) return 0;
  int slices = fake_slices(gpu), slice = slices > 0 ? 0 : -1;
  if (slices == 0) return 1;
  if (shown(gpu, slice)) return 0;
  show(gpu, slice);
  return 1;
}

// show_named makes visible what an entry of CUDA_VISIBLE_DEVICES names: an index, a UUID or the beginning of one.
static int show_named(const char *entry, size_t len) {
  char *end, uuid[64];
  long index = strtol(entry, &end, 10);
  if (len > 0 && end == entry + len) return show_gpu((int)index);
  for (int gpu = 0; len > 4 && gpu < fake_count(); gpu++)
    for (int slice = -1; slice < 0 || slice < fake_slices(gpu); slice++) {
      fake_uuid_text(gpu, slice, uuid, sizeof uuid);
      if (strncmp(uuid, entry, len) != 0) continue;
      if (slice < 0) return show_gpu(gpu);
      if (shown(gpu, slice)) return 0;
      show(gpu, slice);
      return 1;
    }
  return 0;
}

// find_devices lists what CUDA_VISIBLE_DEVICES leaves; an entry that makes no sense ends the list.
static void find_devices(void) {
  const char *at = getenv("CUDA_VISIBLE_DEVICES");
  device_count = 0;
  for (int gpu = 0; at == NULL && gpu < fake_count(); gpu++) show_gpu(gpu);
  while (at != NULL && *at != 0) {
    size_t len = strcspn(at, ",");
    if (!show_named(at, len)) break;
    at += len + (at[len] == ',');
  }
  // One process sees one MIG device, and then no other GPU.
  for (int i = 0; i < device_count; i++)
    if (devices[i].slice >= 0) {
      devices[0] = devices[i];
      device_count = 1;
    }
}

static struct device *device_of(int ordinal) {
  return ordinal >= 0 && ordinal < device_count ? &devices[ordinal] : NULL;
}

// memory_at is the host's copy of device memory, NULL where the range is not within one live allocation.
static uint8_t *memory_at(struct device *d, deviceptr at, size_t bytes) {
  for (int i = 0; i < ALLOCATIONS; i++) {
    struct allocation *a = &d->live[i];
    if (a->host != NULL && at >= a->at && at - a->at <= a->bytes && bytes <= a->bytes - (at - a->at))
      return a->host + (at - a->at);
  }
  return NULL;
}
