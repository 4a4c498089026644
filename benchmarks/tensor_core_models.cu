// Five fused models on tensor cores: studied before chapters 10 and 11 are written. Built, checked
// and timed by tensor_core_models.py.
//
// "Exact" ways split x and W into halves, high and low, each row scaled by a power of two, multiply
// three times, and promote the sums into fp32 registers every 256 of K. TF32 multiplies floats as
// they lie. All ways end in the same epilogue, in registers. Sizes are those of the five models; of
// infinities a split makes NaN.
#include "eps.cuh"
#include "hopper.cuh"
#include "tensor_cores.cuh"

#include <type_traits>

constexpr int BM = 128;           // rows of a tile; 64 for each of two warpgroups
constexpr int ROW = 128;          // bytes of a tile's row
constexpr int THREADS = 3 * 128;  // a warpgroup that brings tiles, two that multiply

// One step of K, 32 bytes of it, for all kinds of elements.
template <class T, int N>
__device__ inline void product(float (&d)[N], unsigned long long a, unsigned long long b, int add) {
    if constexpr (sizeof(T) == 4) wgmma_tf32(d, a, b, add);
    else if constexpr (std::is_same_v<T, __half>) wgmma_f16(d, a, b, add);
    else wgmma_bf16(d, a, b, add);
}

struct Maps {
    CUtensorMap x[2], W[2];  // high and low halves
};

template <class T, int BN, int PLANES, int STAGES>
struct Ring {
    static constexpr int A = BM * ROW, B = BN * ROW, STAGE = PLANES * (A + B);
    static constexpr int BYTES = STAGES * STAGE + 1024;
};

__device__ inline char* align_1024(char* p) {
    return p + (1024 - (address_in_shared(p) & 1023)) % 1024;
}

// --- Epilogues

__device__ inline float sigmoid_(float v) { return __fdividef(1.0f, 1.0f + __expf(-v)); }
__device__ inline float swish_(float v) { return v * sigmoid_(v); }
__device__ inline float mish_(float v) {  // v * tanh(log(1 + e^v)), v in -1..1 here
    float e = __expf(v), n = e * (e + 2.0f);
    return v * __fdividef(n, n + 2.0f);
}

struct Plain {
    __device__ float before(float y, int) const { return y; }
    __device__ float after(float y, int) const { return y; }
};
struct M88 {
    const float* scale;
    __device__ float before(float y, int) const { return y; }
    __device__ float after(float y, int c) const { return swish_(swish_(y) * __ldg(scale + c)); }
};
struct M62 {
    __device__ float before(float y, int) const { return y; }
    __device__ float after(float y, int) const {
        y = y > 0 ? y : 0.01f * y;
        return y + y;
    }
};
struct M94 {
    const float* shift;
    __device__ float before(float y, int c) const {
        return mish_(fminf(fmaxf(y + __ldg(shift + c), -1.0f), 1.0f));
    }
    __device__ float after(float y, int) const { return y; }
};
struct M37 {
    const float* shift;
    __device__ float before(float y, int c) const { return swish_(y) + __ldg(shift + c); }
    __device__ float after(float y, int) const { return y; }
};
// SIZE: of a group; 0: no GroupNorm
template <int SIZE, bool SCALED, class Model>
struct Tail : Model {
    const float *x_scale, *W_scale, *b, *weight, *bias;
    template <int BN>
    __device__ void finish(float (&d)[BN / 2], float* out, int row, int col, int M, int N) const {
        float sx[2] = {1, 1};
        if (SCALED)
            for (int h = 0; h < 2; h++) sx[h] = row + 8 * h < M ? x_scale[row + 8 * h] : 1.0f;
        constexpr int EACH = SIZE ? SIZE / 8 : 1;
#pragma unroll
        for (int j0 = 0; j0 < BN / 8; j0 += EACH) {
            float sum[2] = {}, sq[2] = {};
#pragma unroll
            for (int j = j0; j < j0 + EACH; j++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    int c = col + 8 * j + e;
                    float bb = __ldg(b + c), sw = SCALED ? __ldg(W_scale + c) : 1.0f;
#pragma unroll
                    for (int h = 0; h < 2; h++) {
                        float& v = d[4 * j + 2 * h + e];
                        v = this->before((SCALED ? v * sx[h] * sw : v) + bb, c);
                        sum[h] += v;
                    }
                }
            float rstd[2] = {1, 1}, mean[2] = {0, 0};
            if (SIZE) {
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    sum[h] += __shfl_xor_sync(~0u, sum[h], 1);
                    sum[h] += __shfl_xor_sync(~0u, sum[h], 2);
                    mean[h] = sum[h] / SIZE;
#pragma unroll
                    for (int j = j0; j < j0 + EACH; j++)
#pragma unroll
                        for (int e = 0; e < 2; e++) {
                            float v = d[4 * j + 2 * h + e] - mean[h];
                            sq[h] += v * v;
                        }
                    sq[h] += __shfl_xor_sync(~0u, sq[h], 1);
                    sq[h] += __shfl_xor_sync(~0u, sq[h], 2);
                    rstd[h] = rsqrtf(sq[h] / SIZE + EPS);
                }
            }
#pragma unroll
            for (int j = j0; j < j0 + EACH; j++) {
                int c = col + 8 * j;
                float2 w = {1, 1}, s = {0, 0};
                if (SIZE) {
                    w = *(const float2*)(weight + c);
                    s = *(const float2*)(bias + c);
                }
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    float2 y;
                    y.x = this->after((d[4 * j + 2 * h] - mean[h]) * rstd[h] * w.x + s.x, c);
                    y.y =
                        this->after((d[4 * j + 2 * h + 1] - mean[h]) * rstd[h] * w.y + s.y, c + 1);
                    if (row + 8 * h < M) __stcs((float2*)(out + size_t(row + 8 * h) * N + c), y);
                }
            }
        }
    }
};

// 75: the least of a row, as an ordered key
__device__ inline unsigned to_key(float v) {
    unsigned b = __float_as_uint(v);
    return isnan(v) ? 0 : b >> 31 ? ~b : b | 0x80000000u;
}
template <int SIZE, bool SCALED>
struct Tail75 {
    const float *x_scale, *W_scale, *b, *weight, *bias;
    unsigned* keys;
    template <int BN>
    __device__ void finish(float (&d)[BN / 2], float* out, int row, int col, int M, int N) const {
        float sx[2] = {1, 1};
        if (SCALED)
            for (int h = 0; h < 2; h++) sx[h] = row + 8 * h < M ? x_scale[row + 8 * h] : 1.0f;
        unsigned least[2] = {~0u, ~0u};
        constexpr int EACH = SIZE / 8;
#pragma unroll
        for (int j0 = 0; j0 < BN / 8; j0 += EACH) {
            float sum[2] = {}, sq[2] = {};
#pragma unroll
            for (int j = j0; j < j0 + EACH; j++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    int c = col + 8 * j + e;
                    float bb = __ldg(b + c), sw = SCALED ? __ldg(W_scale + c) : 1.0f;
#pragma unroll
                    for (int h = 0; h < 2; h++) {
                        float& v = d[4 * j + 2 * h + e];
                        v = (SCALED ? v * sx[h] * sw : v) + bb;
                        sum[h] += v;
                    }
                }
#pragma unroll
            for (int h = 0; h < 2; h++) {
                sum[h] += __shfl_xor_sync(~0u, sum[h], 1);
                sum[h] += __shfl_xor_sync(~0u, sum[h], 2);
                float mean = sum[h] / SIZE;
#pragma unroll
                for (int j = j0; j < j0 + EACH; j++)
                    for (int e = 0; e < 2; e++) {
                        float v = d[4 * j + 2 * h + e] - mean;
                        sq[h] += v * v;
                    }
                sq[h] += __shfl_xor_sync(~0u, sq[h], 1);
                sq[h] += __shfl_xor_sync(~0u, sq[h], 2);
                float rstd = rsqrtf(sq[h] / SIZE + EPS);
#pragma unroll
                for (int j = j0; j < j0 + EACH; j++)
                    for (int e = 0; e < 2; e++) {
                        int c = col + 8 * j + e;
                        least[h] = min(least[h], to_key((d[4 * j + 2 * h + e] - mean) * rstd *
                                                            __ldg(weight + c) +
                                                        __ldg(bias + c)));
                    }
            }
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            least[h] = min(least[h], __shfl_xor_sync(~0u, least[h], 1));
            least[h] = min(least[h], __shfl_xor_sync(~0u, least[h], 2));
            if (threadIdx.x % 4 == 0 && row + 8 * h < M) atomicMin(&keys[row + 8 * h], least[h]);
        }
    }
};
// out (N, M) = least of row m + shift[n]
__global__ void spread_kernel(const unsigned* keys, const float* shift, float* out, int M, int N) {
    int m = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (m >= M) return;
    float v[4];
    for (int i = 0; i < 4; i++) {
        unsigned k = keys[m + i];
        v[i] =
            k == 0 ? __int_as_float(0x7fc00000) : __uint_as_float(k >> 31 ? k & 0x7fffffffu : ~k);
    }
    for (int n = blockIdx.y; n < N; n += gridDim.y) {
        float s = shift[n];
        __stcs((float4*)(out + size_t(n) * M + m),
               make_float4(v[0] + s, v[1] + s, v[2] + s, v[3] + s));
    }
}
// --- Halves

__device__ inline void split4(float4 v, float up, uint2& h, uint2& l) {
    float4 s = {v.x * up, v.y * up, v.z * up, v.w * up};
    __half2 a = __floats2half2_rn(s.x, s.y), b = __floats2half2_rn(s.z, s.w);
    float2 fa = __half22float2(a), fb = __half22float2(b);
    __half2 c = __floats2half2_rn(s.x - fa.x, s.y - fa.y),
            d = __floats2half2_rn(s.z - fb.x, s.w - fb.y);
    h = {*(unsigned*)&a, *(unsigned*)&b};
    l = {*(unsigned*)&c, *(unsigned*)&d};
}

// rows of (rows, K) floats -> two planes of halves (rows, padded) and a factor a row
template <int EACH>
__global__ void __launch_bounds__(256)
    split_kernel(const float* x, __half* hi, __half* lo, float* scale, int K) {
    int row = blockIdx.x;
    const float4* from = (const float4*)(x + size_t(row) * K);
    float4 v[EACH];
    float most = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        v[i] = __ldcs(from + threadIdx.x + 256 * i);
        most = fmaxf(
            most, fmaxf(fmaxf(fabsf(v[i].x), fabsf(v[i].y)), fmaxf(fabsf(v[i].z), fabsf(v[i].w))));
    }
    __shared__ float part[8];
    for (int s = 16; s; s /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, s));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = most;
    __syncthreads();
    most = part[0];
    for (int i = 1; i < 8; i++) most = fmaxf(most, part[i]);
    int e = max(-100, min(100, ilogbf(most)));  // 2^e <= most < 2^(e+1)
    if (most == 0) e = 0;
    float up = exp2f(14 - e);
    if (threadIdx.x == 0) scale[row] = exp2f(e - 14);
    uint2* h = (uint2*)(hi + size_t(row) * K);
    uint2* l = (uint2*)(lo + size_t(row) * K);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        split4(v[i], up, h[threadIdx.x + 256 * i], l[threadIdx.x + 256 * i]);
    }
}
inline void split(const float* x, __half* hi, __half* lo, float* scale, int rows, int K) {
    if (K == 8192) split_kernel<8><<<rows, 256>>>(x, hi, lo, scale, K);
    if (K == 1024) split_kernel<1><<<rows, 256>>>(x, hi, lo, scale, K);
}

// --- wgmma, persistent

__device__ inline void load_bytes(void* to, const void* from, int bytes, Barrier* barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
        "[%3];\n" ::"r"(address_in_shared(to)),
        "l"(from), "r"(bytes), "r"(address_in_shared(barrier))
        : "memory");
}
__device__ inline int load_acquire(const int* p) {
    int v;
    asm volatile("ld.acquire.gpu.s32 %0, [%1];\n" : "=r"(v) : "l"(p) : "memory");
    return v;
}
__device__ inline void fence_async_all() { asm volatile("fence.proxy.async;\n" ::: "memory"); }

struct Splitting {  // of W, while the products run
    const float* W;
    __half *hi, *lo;
    float* scale;
    int* ready;
    int first;  // rows before `first` are split
};

// PROMOTE: rounds of 128 bytes of K after which the sums go into totals; 0: never. SPLIT: a fourth
// warpgroup splits the rows of W that no block has needed yet.
template <class T, int BN, int PLANES, int STAGES, int PROMOTE, bool SPLIT, class Tail>
__global__ void __launch_bounds__(THREADS + (SPLIT ? 128 : 0), 1)
    persistent_kernel(const __grid_constant__ Maps maps, const __grid_constant__ Tail tail,
                      float* out, int M, int N, int K, int band, Splitting sp) {
    using R = Ring<T, BN, PLANES, STAGES>;
    constexpr int KS = ROW / sizeof(T);
    extern __shared__ char raw[];
    __shared__ Barrier full[STAGES], empty[STAGES], row_there;
    __shared__ float part[4];
    char* ring = align_1024(raw);
    int rounds = (K + KS - 1) / KS;
    int rows = (M + BM - 1) / BM, cols = (N + BN - 1) / BN, tiles = rows * cols;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(&full[s], 1);
            barrier_init(&empty[s], 2);
        }
        barrier_init(&row_there, 1);
        fence_barriers();
    }
    __syncthreads();
    auto place = [&](int t, int& row0, int& col0) {  // bands of `band` tiles of rows, along columns
        int b = t / (band * cols), within = t - b * band * cols, high = min(band, rows - b * band);
        row0 = (b * band + within % high) * BM;
        col0 = within / high * BN;
    };
    int group = threadIdx.x / 128;
    if (group == 0) {
        fewer_registers<40>();
        if (threadIdx.x == 0) {
            int stage = 0, parity = 1;
            for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
                int row0, col0;
                place(t, row0, col0);
                if (SPLIT && col0 >= sp.first) {
                    int many = min(BN, N - col0);
                    while (load_acquire(&sp.ready[col0 / BN]) < many) __nanosleep(64);
                    fence_async_all();
                }
                for (int r = 0; r < rounds; r++) {
                    barrier_wait(&empty[stage], parity);
                    barrier_arrive_expect(&full[stage], R::STAGE);
                    char* a = ring + stage * R::STAGE;
                    char* b = a + PLANES * R::A;
#pragma unroll
                    for (int p = 0; p < PLANES; p++) {
                        load_tile(a + p * R::A, &maps.x[p], r * KS, row0, &full[stage]);
                        load_tile(b + p * R::B, &maps.W[p], r * KS, col0, &full[stage]);
                    }
                    if (++stage == STAGES) stage = 0, parity ^= 1;
                }
            }
        }
        return;
    }
    if (SPLIT && group == 3) {
        fewer_registers<56>();
        float4* row = (float4*)(ring + STAGES * R::STAGE);
        int me = threadIdx.x % 128, parity = 0;
        int r = sp.first + blockIdx.x;
        if (me == 0 && r < N) {
            barrier_arrive_expect(&row_there, K * 4);
            load_bytes(row, sp.W + size_t(r) * K, K * 4, &row_there);
        }
        for (; r < N; r += gridDim.x) {
            barrier_wait(&row_there, parity);
            parity ^= 1;
            float most = 0;
#pragma unroll 4
            for (int i = me; i < K / 4; i += 128) {
                float4 v = row[i];
                most = fmaxf(most,
                             fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
            }
            for (int s = 16; s; s /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, s));
            if (me % 32 == 0) part[me / 32] = most;
            sync_some(1, 128);
            most = fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
            int e = most == 0 ? 0 : max(-100, min(100, ilogbf(most)));
            float up = exp2f(14 - e);
            if (me == 0) sp.scale[r] = exp2f(e - 14);
            uint2* h = (uint2*)(sp.hi + size_t(r) * K);
            uint2* l = (uint2*)(sp.lo + size_t(r) * K);
#pragma unroll 4
            for (int i = me; i < K / 4; i += 128) {
                uint2 a, b;
                split4(row[i], up, a, b);
                h[i] = a;
                l[i] = b;
            }
            __threadfence();
            fence_async_all();
            sync_some(1, 128);
            if (me == 0) {
                atomicAdd(&sp.ready[r / BN], 1);
                int next = r + gridDim.x;
                if (next < N) {
                    barrier_arrive_expect(&row_there, K * 4);
                    load_bytes(row, sp.W + size_t(next) * K, K * 4, &row_there);
                }
            }
        }
        return;
    }
    more_registers<SPLIT ? 208 : 232>();
    constexpr int SUMS = BN / 2;
    int stage = 0, parity = 0;
    auto release = [&](int s) {
        if (threadIdx.x % 128 == 0) barrier_arrive(&empty[s]);
    };
    constexpr int CHUNK = PROMOTE ? PROMOTE : 1 << 30;
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
        int row0, col0, before = -1;
        float sums[SUMS], total[PROMOTE ? SUMS : 1];
        place(t, row0, col0);
#pragma unroll
        for (int i = 0; i < (PROMOTE ? SUMS : 1); i++) total[i] = 0.0f;
        if (!PROMOTE) {
#pragma unroll
            for (int i = 0; i < SUMS; i++) sums[i] = 0.0f;
        }
        for (int r0 = 0; r0 < rounds; r0 += CHUNK) {
            int until = PROMOTE ? min(rounds, r0 + CHUNK) : rounds;
            for (int r = r0; r < until; r++) {
                barrier_wait(&full[stage], parity);
                char* a = ring + stage * R::STAGE + (group - 1) * 64 * ROW;
                char* b = ring + stage * R::STAGE + PLANES * R::A;
                wgmma_fence();
#pragma unroll
                for (int k = 0; k < ROW; k += 32) {
                    unsigned long long hi_a = describe(a + k), hi_b = describe(b + k);
                    if (PLANES == 2) {
                        unsigned long long lo_a = describe(a + R::A + k),
                                           lo_b = describe(b + R::B + k);
                        product<T>(sums, hi_a, lo_b, r > r0 || k > 0);
                        product<T>(sums, lo_a, hi_b, 1);
                        product<T>(sums, hi_a, hi_b, 1);
                    } else {
                        product<T>(sums, hi_a, hi_b, 1);
                    }
                }
                wgmma_commit();
                wgmma_wait<1>();
                if (before >= 0) release(before);
                before = stage;
                if (++stage == STAGES) stage = 0, parity ^= 1;
            }
            wgmma_wait<0>();
            if (before >= 0) release(before);
            before = -1;
            if (PROMOTE) {
#pragma unroll
                for (int i = 0; i < SUMS; i++) total[i] += sums[i];
            }
        }
        int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
        int row = row0 + (group - 1) * 64 + warp * 16 + lane / 4, col = col0 + lane % 4 * 2;
        if constexpr (PROMOTE > 0) tail.template finish<BN>(total, out, row, col, M, N);
        else tail.template finish<BN>(sums, out, row, col, M, N);
    }
}

// --- mma.sync, for all from sm_80 on

namespace mma10 {
constexpr int BM = 128, BN = 128, BK = 64, WM = 32, WN = 64, THREADS = 256;
constexpr int ROW = BK * 2, PLANE = BM * ROW;  // bytes
constexpr int STAGE = 4 * PLANE;               // x hi, x lo, W hi, W lo

__device__ inline int swizzled(int row, int chunk) {
    return row * ROW + ((chunk ^ (row & 7)) << 4);
}

template <int STAGES, int PROMOTE, class Tail>
__global__ void __launch_bounds__(THREADS, 1)
    linear_kernel(const __half* xh, const __half* xl, const __half* Wh, const __half* Wl, Tail tail,
                  float* out, int M, int N, int K) {
    extern __shared__ __align__(128) char ring[];
    int row0 = blockIdx.x * BM, col0 = blockIdx.y * BN, rounds = (K + BK - 1) / BK;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int top = warp / 2 * WM, left = warp % 2 * WN;
    auto bring = [&](int r) {
        if (r < rounds) {
            char* to = ring + r % STAGES * STAGE;
            int chunk = threadIdx.x % 8;
#pragma unroll
            for (int p = 0; p < 4; p++) {
                const __half* from = p == 0 ? xh : p == 1 ? xl : p == 2 ? Wh : Wl;
                int first = p < 2 ? row0 : col0, rows = p < 2 ? M : N;
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    int row = threadIdx.x / 8 + 32 * i;
                    bool inside = first + row < rows;
                    const __half* at =
                        from + size_t(inside ? first + row : 0) * K + r * BK + chunk * 8;
                    copy_async(to + p * PLANE + swizzled(row, chunk), at, inside ? 16 : 0);
                }
            }
        }
        commit_copies();
    };
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) bring(s);
    float total[2][32] = {};
    for (int r0 = 0; r0 < rounds; r0 += PROMOTE) {
        float sums[2][32] = {};
        int until = min(rounds, r0 + PROMOTE);
        for (int r = r0; r < until; r++) {
            wait_for_copies<STAGES - 2>();
            __syncthreads();
            bring(r + STAGES - 1);
            const char* at = ring + r % STAGES * STAGE;
#pragma unroll
            for (int k = 0; k < BK / 16; k++) {
                unsigned ah[2][4], al[2][4], b[4][4];
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    int where = swizzled(top + 16 * i + lane % 16, 2 * k + lane / 16);
                    load_matrices(ah[i], at + where);
                    load_matrices(al[i], at + PLANE + where);
                }
#pragma unroll
                for (int j = 0; j < 4; j++)
                    load_matrices(b[j], at + 3 * PLANE +
                                            swizzled(left + 16 * j + lane / 16 * 8 + lane % 8,
                                                     2 * k + lane / 8 % 2));
#pragma unroll
                for (int j = 0; j < 8; j++)
#pragma unroll
                    for (int i = 0; i < 2; i++)
                        mma_f16((float (&)[4])sums[i][4 * j], ah[i],
                                (unsigned (&)[2])b[j / 2][j % 2 * 2]);
#pragma unroll
                for (int j = 0; j < 4; j++)
                    load_matrices(b[j], at + 2 * PLANE +
                                            swizzled(left + 16 * j + lane / 16 * 8 + lane % 8,
                                                     2 * k + lane / 8 % 2));
#pragma unroll
                for (int j = 0; j < 8; j++)
#pragma unroll
                    for (int i = 0; i < 2; i++)
                        mma_f16((float (&)[4])sums[i][4 * j], al[i],
                                (unsigned (&)[2])b[j / 2][j % 2 * 2]);
#pragma unroll
                for (int j = 0; j < 8; j++)
#pragma unroll
                    for (int i = 0; i < 2; i++)
                        mma_f16((float (&)[4])sums[i][4 * j], ah[i],
                                (unsigned (&)[2])b[j / 2][j % 2 * 2]);
            }
        }
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int e = 0; e < 32; e++) total[i][e] += sums[i][e];
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
        tail.template finish<WN>(total[i], out, row0 + top + 16 * i + lane / 4,
                                 col0 + left + lane % 4 * 2, M, N);
}
}  // namespace mma10

// --- Host

static int sms() {
    static int n;
    if (!n) cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, 0);
    return n;
}
template <class T, int BN, int PLANES, int STAGES, int PROMOTE, bool SPLIT, class Tail>
int launch(const Maps& maps, const Tail& tail, float* out, int M, int N, int K, int band,
           Splitting sp) {
    auto kernel = persistent_kernel<T, BN, PLANES, STAGES, PROMOTE, SPLIT, Tail>;
    constexpr int BYTES = Ring<T, BN, PLANES, STAGES>::BYTES + (SPLIT ? 32768 : 0);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
    kernel<<<sms(), THREADS + (SPLIT ? 128 : 0), BYTES>>>(maps, tail, out, M, N, K, band, sp);
    return cudaGetLastError();
}
template <class Tail, class Model>
Tail make(const Model& m, float* xs, float* ws, const float* const* p) {
    Tail t{m};
    t.x_scale = xs;
    t.W_scale = ws;
    t.b = p[2];
    t.weight = p[3];
    t.bias = p[4];
    return t;
}

template <class Tail>
Tail make75(unsigned* keys, float* xs, float* ws, const float* const* p) {
    return Tail{xs, ws, p[2], p[3], p[4], keys};
}
struct Planes {
    __half *xh, *xl, *wh, *wl;
    float *xs, *ws;
    int* ready;
    unsigned* keys;
    Planes(char* scratch, int M, int N, int K) {
        xh = (__half*)scratch;
        xl = xh + size_t(M) * K;
        wh = xl + size_t(M) * K;
        wl = wh + size_t(N) * K;
        xs = (float*)(wl + size_t(N) * K);
        ws = xs + M;
        ready = (int*)(ws + N);
        keys = (unsigned*)(ready + 1024);
    }
};
template <int PROMOTE, bool SPLIT, class Tail>
int exact(const Tail& tail, const Planes& q, const float* const* p, float* out, int M, int N, int K,
          int band) {
    Maps maps;
    constexpr int BN = 128;
    maps.x[0] = make_map(q.xh, M, K, BM);
    maps.x[1] = make_map(q.xl, M, K, BM);
    maps.W[0] = make_map(q.wh, N, K, BN);
    maps.W[1] = make_map(q.wl, N, K, BN);
    int tiles_m = (M + BM - 1) / BM;
    int first = SPLIT ? min(N, ((sms() + tiles_m - 1) / tiles_m) * BN) : N;
    if (SPLIT) cudaMemsetAsync(q.ready, 0, (N / BN + 1) * 4);
    split(p[0], q.xh, q.xl, q.xs, M, K);
    split(p[1], q.wh, q.wl, q.ws, first, K);
    return launch<__half, BN, 2, 3, PROMOTE, SPLIT>(maps, tail, out, M, N, K, band,
                                                    {p[1], q.wh, q.wl, q.ws, q.ready, first});
}
template <int PROMOTE, class Tail>
int by_mma(const Tail& tail, const Planes& q, const float* const* p, float* out, int M, int N,
           int K) {
    split(p[0], q.xh, q.xl, q.xs, M, K);
    split(p[1], q.wh, q.wl, q.ws, N, K);
    auto kernel = mma10::linear_kernel<3, PROMOTE, Tail>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 3 * mma10::STAGE);
    kernel<<<dim3((M + 127) / 128, (N + 127) / 128), mma10::THREADS, 3 * mma10::STAGE>>>(
        q.xh, q.xl, q.wh, q.wl, tail, out, M, N, K);
    return cudaGetLastError();
}
template <class T, int BN, int STAGES, class Tail>
int single(const Tail& tail, const T* x, const T* W, float* out, int M, int N, int K, int band) {
    Maps maps;
    maps.x[0] = make_map(x, M, K, BM);
    maps.W[0] = make_map(W, N, K, BN);
    return launch<T, BN, 1, STAGES, 0, false>(maps, tail, out, M, N, K, band, {});
}
enum Way { TF32 = 1, BF16, SPLIT_BEFORE, SPLIT_BESIDE, MMA_SYNC };  // as in the script

template <class Scaled, class Bare>
int ways(int way, const Scaled& scaled, const Bare& bare, const Planes& q, const float* const* p,
         float* out, int M, int N, int K) {
    constexpr int BAND = 8, PROMOTE = 4;  // tiles of rows that run along the columns together
    if (way == SPLIT_BEFORE) return exact<PROMOTE, false>(scaled, q, p, out, M, N, K, BAND);
    if (way == SPLIT_BESIDE) return exact<PROMOTE, true>(scaled, q, p, out, M, N, K, BAND);
    if (way == MMA_SYNC) return by_mma<PROMOTE>(scaled, q, p, out, M, N, K);
    if (way == TF32) return single<float, 256, 4>(bare, p[0], p[1], out, M, N, K, BAND);
    return -1;
}

// p: x (M, K), W (N, K), b, weight, bias, one more parameter (N). scratch: 4 * (M + N) * K bytes
// and a megabyte. Model 0 is the product alone. K is 8192 or 1024. Returns CUDA's error.
extern "C" int run(int model, int way, const float* const* p, float* out, char* scratch, int M,
                   int N, int K) {
    Planes q(scratch, M, N, K);
    auto whole = [&](auto scaled, auto bare) {
        return ways(way, scaled, bare, q, p, out, M, N, K);
    };
    auto tail = [&](auto model, auto size) {
        using Model = decltype(model);
        constexpr int SIZE = decltype(size)::value;
        return whole(make<Tail<SIZE, true, Model>>(model, q.xs, q.ws, p),
                     make<Tail<SIZE, false, Model>>(model, q.xs, q.ws, p));
    };
    if (model == 88) return tail(M88{p[5]}, std::integral_constant<int, 32>());
    if (model == 62) return tail(M62{}, std::integral_constant<int, 16>());
    if (model == 94) return tail(M94{p[5]}, std::integral_constant<int, 32>());
    if (model == 37) return tail(M37{p[5]}, std::integral_constant<int, 64>());
    if (model == 75) {
        cudaMemsetAsync(q.keys, 0xff, M * 4);
        int error = whole(make75<Tail75<16, true>>(q.keys, q.xs, q.ws, p),
                          make75<Tail75<16, false>>(q.keys, q.xs, q.ws, p));
        spread_kernel<<<dim3((M / 4 + 127) / 128, 264), 128>>>(q.keys, p[5], out, M, N);
        return error;
    }
    if (way == BF16) {
        auto x = reinterpret_cast<const __nv_bfloat16*>(p[0]);
        auto W = reinterpret_cast<const __nv_bfloat16*>(p[1]);
        auto plain = make<Tail<0, false, Plain>>(Plain{}, q.xs, q.ws, p);
        return single<__nv_bfloat16, 256, 4>(plain, x, W, out, M, N, K, 8);
    }
    return tail(Plain{}, std::integral_constant<int, 0>());
}
