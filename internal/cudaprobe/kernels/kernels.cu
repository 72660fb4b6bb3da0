// Kernels of the GPU fitness checks. No CUDA toolkit: clang's NVPTX back end, so the few CUDA words are spelled out here.
// kernels.ptx is made from this file by
//
//	clang-16 -x cuda --cuda-device-only --cuda-gpu-arch=sm_52 -nocudainc -nocudalib -O2 -S -o kernels.ptx kernels.cu
#define GLOBAL extern "C" __attribute__((global))
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))
#define tidx() ((unsigned)__nvvm_read_ptx_sreg_tid_x())
#define tidy() ((unsigned)__nvvm_read_ptx_sreg_tid_y())
#define ctax() ((unsigned)__nvvm_read_ptx_sreg_ctaid_x())
#define ctay() ((unsigned)__nvvm_read_ptx_sreg_ctaid_y())
#define ntidx() ((unsigned)__nvvm_read_ptx_sreg_ntid_x())
#define nctax() ((unsigned)__nvvm_read_ptx_sreg_nctaid_x())

#define TILE 16

// c = a*b, row-major n x n, n a multiple of TILE.
// Launch: block (TILE,TILE,1), grid (n/TILE,n/TILE,1).
GLOBAL void matmul(const float *a, const float *b, float *c, unsigned n) {
  static SHARED float as[TILE][TILE];
  static SHARED float bs[TILE][TILE];
  unsigned tx = tidx(), ty = tidy();
  unsigned col = ctax() * TILE + tx, row = ctay() * TILE + ty;
  float acc = 0.0f;
  for (unsigned t = 0; t < n; t += TILE) {
    as[ty][tx] = a[row * n + t + tx];
    bs[ty][tx] = b[(t + ty) * n + col];
    __syncthreads();
#pragma unroll
    for (unsigned k = 0; k < TILE; k++) acc = __builtin_fmaf(as[ty][k], bs[k][tx], acc);
    __syncthreads();
  }
  c[row * n + col] = acc;
}

DEVICE static inline unsigned mix(unsigned long long i, unsigned seed) {
  unsigned x = (unsigned)i * 2654435761u ^ (unsigned)(i >> 32) ^ seed;
  x ^= x >> 15; x *= 0x2c1b3c6du; x ^= x >> 12;
  return x;
}

// p[i] = mix(i, seed), i < n. Grid-stride.
GLOBAL void memfill(unsigned *p, unsigned long long n, unsigned seed) {
  unsigned long long step = (unsigned long long)ntidx() * nctax();
  for (unsigned long long i = (unsigned long long)ctax() * ntidx() + tidx(); i < n; i += step)
    p[i] = mix(i, seed);
}

// *bad += number of words that differ. Grid-stride.
GLOBAL void memcheck(const unsigned *p, unsigned long long n, unsigned seed, unsigned *bad) {
  unsigned long long step = (unsigned long long)ntidx() * nctax();
  for (unsigned long long i = (unsigned long long)ctax() * ntidx() + tidx(); i < n; i += step)
    if (p[i] != mix(i, seed)) __nvvm_atom_add_gen_i((int *)bad, 1);
}
