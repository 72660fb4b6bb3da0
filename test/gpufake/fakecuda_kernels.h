// The kernels of the checks, by name, on the CPU.
enum { TILE = 16, MATMUL = 1, MEMFILL, MEMCHECK };

static int kernel_of(const char *name) {
  if (strcmp(name, "matmul") == 0) return MATMUL;
  if (strcmp(name, "memfill") == 0) return MEMFILL;
  if (strcmp(name, "memcheck") == 0) return MEMCHECK;
  return 0;
}

struct launch { unsigned grid[3], block[3]; void **params; };

static uint64_t word(void *param) { uint64_t v; memcpy(&v, param, 8); return v; }
static uint32_t half(void *param) { uint32_t v; memcpy(&v, param, 4); return v; }

static uint64_t writes; // grows when anything but a matrix product writes device memory

// multiply computes c = a·b. The same product of the same matrices is the same again, and costs the CPU nothing.
static void multiply(struct device *d, const float *a, const float *b, float *c, size_t n) {
  static struct { const float *a, *b, *c; size_t n; uint64_t writes; } last;
  if (last.a == a && last.b == b && last.c == c && last.n == n && last.writes == writes) return;
  last.a = a, last.b = b, last.c = c, last.n = n, last.writes = writes;
  for (size_t i = 0; i < n; i++) {
    memset(c + i * n, 0, n * sizeof *c);
    for (size_t k = 0; k < n; k++)
      for (size_t j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
  }
  size_t row = n / 2, col = n / 3;
  c[row * n + col] += fake_value(d->gpu, "wrong_result", 0);
  if (fake_value(d->gpu, "nan_result", 0)) c[row * n + col] = __builtin_nanf("");
}

static int run_matmul(struct device *d, struct launch *l) {
  uint64_t n = half(l->params[3]);
  if (n == 0 || n % TILE != 0 || l->block[0] != TILE || l->block[1] != TILE || l->block[2] != 1) return INVALID_VALUE;
  if (l->grid[0] != n / TILE || l->grid[1] != n / TILE || l->grid[2] != 1) return INVALID_VALUE;
  float *m[3];
  for (int i = 0; i < 3; i++) {
    m[i] = (float *)memory_at(d, word(l->params[i]), n * n * sizeof(float));
    if (m[i] == NULL) return d->pending = ILLEGAL_ADDRESS, SUCCESS;
  }
  multiply(d, m[0], m[1], m[2], n);
  d->clock += fake_value(d->gpu, "kernel_us", 250) * (d->warm ? 1 : 4);
  d->warm = 1;
  return SUCCESS;
}

static uint32_t mix(uint64_t i, uint32_t seed) {
  uint32_t x = ((uint32_t)i * 2654435761u) ^ (uint32_t)(i >> 32) ^ seed;
  x ^= x >> 15, x *= 0x2c1b3c6du, x ^= x >> 12;
  return x;
}

static int run_memory(struct device *d, struct launch *l, int kernel) {
  uint64_t n = word(l->params[1]);
  uint32_t seed = half(l->params[2]);
  if (l->block[1] * l->block[2] * l->grid[1] * l->grid[2] != 1) return INVALID_VALUE;
  uint32_t *p = (uint32_t *)memory_at(d, word(l->params[0]), n * 4);
  uint32_t *bad = kernel == MEMCHECK ? (uint32_t *)memory_at(d, word(l->params[3]), 4) : NULL;
  if (p == NULL || (kernel == MEMCHECK && bad == NULL)) return d->pending = ILLEGAL_ADDRESS, SUCCESS;
  uint32_t found = 0;
  for (uint64_t i = 0; kernel == MEMFILL && i < n; i++) p[i] = mix(i, seed);
  for (uint64_t i = 0; kernel == MEMCHECK && i < n; i++) found += p[i] != mix(i, seed);
  if (kernel == MEMCHECK) *bad += found;
  for (long long i = fake_value(d->gpu, "bad_words", 0); kernel == MEMFILL && i > 0; i--) p[n - i] ^= 1;
  d->clock += n * 4 / 1e6; // a TB a second
  writes++;
  return SUCCESS;
}

static int run_kernel(struct device *d, int kernel, struct launch *l) {
  unsigned threads = l->block[0] * l->block[1] * l->block[2];
  if (threads == 0 || threads > 1024 || l->grid[0] * l->grid[1] * l->grid[2] == 0) return INVALID_VALUE;
  return kernel == MATMUL ? run_matmul(d, l) : run_memory(d, l, kernel);
}
