// What NVML's functions are given and return, as far as the fake needs it.
enum {
  SUCCESS = 0,
  UNINITIALIZED = 1,
  INVALID_ARGUMENT = 2,
  NOT_SUPPORTED = 3,
  NOT_FOUND = 6,
  INSUFFICIENT_SIZE = 7,
  TIMEOUT = 10,
  ARGUMENT_VERSION_MISMATCH = 25,
};

static const struct {
  int code;
  const char *text;
} words[] = {
    {SUCCESS, "Success"},
    {UNINITIALIZED, "Uninitialized"},
    {INVALID_ARGUMENT, "Invalid Argument"},
    {NOT_SUPPORTED, "Not Supported"},
    {4, "Insufficient Permissions"},
    {NOT_FOUND, "Not Found"},
    {INSUFFICIENT_SIZE, "Insufficient Size"},
    {9, "Driver Not Loaded"},
    {TIMEOUT, "Timeout"},
    {15, "GPU is lost"},
    {16, "GPU requires reset"},
    {18, "Driver/library version mismatch"},
    {999, "Unknown Error"},
};

enum { GPUS = 16, SLICES = 8 };

struct device {
  int gpu, slice; // slice is -1 for a whole GPU
};

struct memory {
  uint64_t total, free, used;
};

struct pci {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
};

struct field {
  unsigned id, scope;
  int64_t timestamp, latency;
  unsigned type;
  int answer;
  uint64_t value;
};

struct fabric_v1 {
  uint8_t cluster[16];
  int status;
  unsigned clique;
  uint8_t state;
};

struct fabric {
  unsigned version;
  uint8_t cluster[16];
  int status;
  unsigned clique;
  uint8_t state;
  unsigned health_mask;
  uint8_t summary; // since version 3
};

struct event {
  struct device *device;
  uint64_t type, data;
  unsigned gpu_instance, compute_instance;
};

_Static_assert(sizeof(struct field) == 40 && sizeof(struct fabric) == 40 && sizeof(struct event) == 32,
               "the layouts are the driver's");
