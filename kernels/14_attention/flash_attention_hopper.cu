#include "hopper.cuh"
#include "split.cuh"
#include "warpgroup.cuh"

constexpr int BM = 128, BN = 128;               // a block owns BM queries, and walks over BN keys
constexpr int CONSUMERS = 2;                    // warpgroups that multiply, 64 queries each
constexpr int THREADS = 128 * (CONSUMERS + 1);  // and one that brings tiles
constexpr float UP = 14.0f;                     // weights are kept as 2^14 times what they are

// Tiles as products read them, rows of 128 bytes: high halves, then low ones, in chunks of 64
// columns.
template <int D>
struct alignas(1024) Shared {
    __half q[2][D / 64][BM][64], k[2][D / 64][BN][64], v[2][BN / 64][D][64];
    float k_scale[BN];
    Barrier q_full, k_full, k_empty, v_full, v_empty;
};

// Halves of q and k: (heads * S, D); of v, turned around: (heads * D, padded); high and low.
struct Maps {
    CUtensorMap q[2], k[2], v[2];
};
struct Scales {
    const float *q, *k, *v;  // of rows of q and k, and of columns of v
};

// What a tile of scores becomes: weights as halves, in the registers of the next product.
struct Weights {
    unsigned high[BN / 16][4], low[BN / 16][4];
};
__device__ inline void take(Weights& weights, const float (&s)[BN / 2]) {
#pragma unroll
    for (int i = 0; i < BN / 2; i += 2) {
        __half2 high = __floats2half2_rn(s[i], s[i + 1]);
        float2 nearly = __half22float2(high);
        __half2 low = __floats2half2_rn(s[i] - nearly.x, s[i + 1] - nearly.y);
        weights.high[i / 8][i / 2 % 4] = reinterpret_cast<unsigned&>(high);
        weights.low[i / 8][i / 2 % 4] = reinterpret_cast<unsigned&>(low);
    }
}

// s = q * k^T of a tile: three products of halves, promoted to floats every 64 of D.
template <int D>
__device__ inline void multiply_keys(float (&s)[BN / 2], const Shared<D>& tiles, int top) {
#pragma unroll
    for (int c = 0; c < D / 64; c++) {
        float part[BN / 2];
        wgmma_fence();
#pragma unroll
        for (int d = 0; d < 64; d += 16) {
            auto q_high = make_descriptor(&tiles.q[0][c][top][d]),
                 q_low = make_descriptor(&tiles.q[1][c][top][d]),
                 k_high = make_descriptor(&tiles.k[0][c][0][d]),
                 k_low = make_descriptor(&tiles.k[1][c][0][d]);
            wgmma_f16(part, q_high, k_low, d > 0);
            wgmma_f16(part, q_low, k_high, 1);
            wgmma_f16(part, q_high, k_high, 1);
        }
        wgmma_commit();
        wgmma_wait<0>();
#pragma unroll
        for (int i = 0; i < BN / 2; i++) s[i] = c ? s[i] + part[i] : part[i];
    }
}

// o = o * shrink + weights * v of a tile, likewise, promoted every 64 keys. shrink: of both rows
template <int D>
__device__ inline void add_values(float (&o)[D / 2], float2 shrink, const Weights& weights,
                                  const Shared<D>& tiles) {
#pragma unroll
    for (int c = 0; c < BN / 64; c++) {
        float part[D / 2];
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < 64; k += 16) {
            auto v_high = make_descriptor(&tiles.v[0][c][0][k]),
                 v_low = make_descriptor(&tiles.v[1][c][0][k]);
            auto &high = weights.high[4 * c + k / 16], &low = weights.low[4 * c + k / 16];
            wgmma_f16(part, high, v_low, k > 0);
            wgmma_f16(part, low, v_high, 1);
            wgmma_f16(part, high, v_high, 1);
        }
        wgmma_commit();
        wgmma_wait<0>();
#pragma unroll
        for (int i = 0; i < D / 2; i++) {
            float by = c ? 1.0f : i / 2 % 2 ? shrink.y : shrink.x;
            o[i] = o[i] * by + part[i];
        }
    }
}

// The largest, or the sum, of what the four lanes have that share a row.
__device__ inline float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ inline float quad_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// Brings q once, then keys and values tile by tile. All threads of the warpgroup call it.
template <int D>
__device__ void bring(Shared<D>& tiles, const Maps& maps, const float* k_scale, int head, int q0,
                      int S, int rounds) {
    int t = threadIdx.x % 128;
    if (t == 0) {
        barrier_arrive_expect(&tiles.q_full, sizeof(tiles.q));
        for (int p = 0; p < 2; p++) {
            for (int c = 0; c < D / 64; c++) {
                load_tile(tiles.q[p][c], &maps.q[p], 64 * c, head * S + q0, &tiles.q_full);
            }
        }
    }
    for (int j = 0; j < rounds; j++) {
        int key = j * BN + t, parity = j % 2;
        float scale = key < S ? k_scale[size_t(head) * S + key] : 0.0f;
        barrier_wait(&tiles.k_empty, parity ^ 1);
        tiles.k_scale[t] = scale;
        barrier_arrive(&tiles.k_full);
        if (t > 0) continue;
        barrier_arrive_expect(&tiles.k_full, sizeof(tiles.k));
        for (int p = 0; p < 2; p++) {
            for (int c = 0; c < D / 64; c++) {
                load_tile(tiles.k[p][c], &maps.k[p], 64 * c, head * S + j * BN, &tiles.k_full);
            }
        }
        barrier_wait(&tiles.v_empty, parity ^ 1);
        barrier_arrive_expect(&tiles.v_full, sizeof(tiles.v));
        for (int p = 0; p < 2; p++) {
            for (int c = 0; c < BN / 64; c++) {
                load_tile(tiles.v[p][c], &maps.v[p], j * BN + 64 * c, head * D, &tiles.v_full);
            }
        }
    }
}

// The running maximum and sum of the two rows that a thread has a part of.
struct Softmax {
    float scale[2], most[2] = {-INFINITY, -INFINITY}, sum[2] = {};

    // scales: of rows of q, (S); exponents are of 2.
    __device__ Softmax(const float* scales, const Patch& mine, int S, int D) {
        for (int h = 0; h < 2; h++) {
            int row = mine.row(2 * h);
            scale[h] = (row < S ? scales[row] : 0.0f) * 1.44269504f * rsqrtf(D);
        }
    }
    // Scores become weights, 2^14 times what they are. Returns what o of both rows shrinks by.
    __device__ float2 weigh(float (&s)[BN / 2]) {
        float tops[2] = {-INFINITY, -INFINITY}, base[2], shrink[2];
#pragma unroll
        for (int i = 0; i < BN / 2; i++) tops[i / 2 % 2] = fmaxf(tops[i / 2 % 2], s[i]);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float now = fmaxf(most[h], quad_max(tops[h]));
            base[h] = now == -INFINITY ? 0.0f : now - UP;
            shrink[h] = most[h] == -INFINITY ? 0.0f : exp2f(most[h] - now);
            most[h] = now;
            sum[h] *= shrink[h];
        }
#pragma unroll
        for (int i = 0; i < BN / 2; i++) {
            s[i] = exp2f(s[i] - base[i / 2 % 2]);
            sum[i / 2 % 2] += s[i];
        }
        return {shrink[0], shrink[1]};
    }
};

// What no query of the tile's may see becomes -inf: keys from S on, and those behind its own.
__device__ inline void hide(float (&s)[BN / 2], const Patch& mine, int key0, int S, int causal) {
    if (key0 + BN <= S && !(causal && key0 + BN > mine.row(0))) return;
#pragma unroll
    for (int i = 0; i < BN / 2; i++) {
        int key = key0 + mine.at(i);
        if (key >= S || (causal && key > mine.row(i))) s[i] = -INFINITY;
    }
}

// out, v_scale: of this head. Each column of o has a scale; the sums hold 2^14, as o does.
template <int D>
__device__ inline void store_rows(float* out, const float (&o)[D / 2], const float (&sum)[2],
                                  const float* v_scale, const Patch& mine, int S) {
    float part[2] = {1.0f / quad_sum(sum[0]), 1.0f / quad_sum(sum[1])};
#pragma unroll
    for (int i = 0; i < D / 2; i++) {
        int row = mine.row(i), d = mine.at(i);
        if (row < S) out[size_t(row) * D + d] = o[i] * part[i / 2 % 2] * v_scale[d];
    }
}

// All threads of the block must call it.
template <int D>
__device__ void prepare(Shared<D>& tiles) {
    if (threadIdx.x == 0) {
        barrier_init(&tiles.q_full, 1);
        barrier_init(&tiles.k_full, 129);  // all who bring scales, and the copies
        barrier_init(&tiles.v_full, 1);
        barrier_init(&tiles.k_empty, 128 * CONSUMERS);
        barrier_init(&tiles.v_empty, 128 * CONSUMERS);
        fence_barriers();
    }
    __syncthreads();  // the barriers are there before anyone waits at them
}

// out: (heads, S, D): of each query, softmax over the keys, times v; causal: over those not behind.
// Where halves cannot hold the range of a row of q or k, or of a column of v, results of it are
// NaN. A consumer warpgroup owns 64 queries of a block's BM. One block owns BM queries of a head.
template <int D>
__global__ void __launch_bounds__(THREADS, 1)
    flash_attention_hopper_kernel(const __grid_constant__ Maps maps, Scales scales, float* out,
                                  int S, int causal) {
    extern __shared__ __align__(1024) unsigned char memory[];
    Shared<D>& tiles = *reinterpret_cast<Shared<D>*>(memory);
    prepare(tiles);
    int head = blockIdx.y, q0 = (gridDim.x - 1 - blockIdx.x) * BM;  // the longest walks first
    int keys = causal ? min(S, q0 + BM) : S, rounds = (keys + BN - 1) / BN;
    if (threadIdx.x / 128 == CONSUMERS) {
        fewer_registers<40>();
        bring<D>(tiles, maps, scales.k, head, q0, S, rounds);
        return;
    }
    more_registers<232>();
    int top = threadIdx.x / 128 * 64;
    Patch mine(q0 + top, 0);
    Softmax softmax(scales.q + size_t(head) * S, mine, S, D);
    float o[D / 2] = {};
    barrier_wait(&tiles.q_full, 0);
    for (int j = 0; j < rounds; j++) {
        float s[BN / 2];
        barrier_wait(&tiles.k_full, j % 2);
        multiply_keys<D>(s, tiles, top);
#pragma unroll
        for (int i = 0; i < BN / 2; i++) {
            s[i] *= softmax.scale[i / 2 % 2] * tiles.k_scale[mine.at(i)];
        }
        barrier_arrive(&tiles.k_empty);
        hide(s, mine, j * BN, S, causal);
        float2 shrink = softmax.weigh(s);
        Weights weights;
        take(weights, s);
        barrier_wait(&tiles.v_full, j % 2);
        add_values<D>(o, shrink, weights, tiles);
        barrier_arrive(&tiles.v_empty);
    }
    store_rows<D>(out + size_t(head) * S * D, o, softmax.sum, scales.v + head * D, mine, S);
}

// v: (heads, S, D). most[head * D + d] = the largest magnitude of column d, as the bits of a float.
// One thread owns every (blockDim.x / D)th row of 256 of a column.
__global__ void column_most_of_heads_kernel(const float* v, unsigned* most, int S, int D) {
    int d = threadIdx.x % D, first = blockIdx.x * 256, end = min(first + 256, S);
    const float* head = v + size_t(blockIdx.y) * S * D;
    float mine = 0.0f;
    for (int row = first + threadIdx.x / D; row < end; row += blockDim.x / D) {
        mine = fmaxf(mine, fabsf(head[size_t(row) * D + d]));
    }
    atomicMax(&most[blockIdx.y * D + d], __float_as_uint(mine));
}

// high, low: (heads * D, padded): v, turned around, as halves, with zeros behind S; most, few,
// scale: (heads * D). few, 0 before, counts the elements for which halves have too few bits. The
// warp that finds one too many writes a NaN to the column: no result of it is finite. One thread
// owns a column of 8 rows to load, then 4 pairs of rows to store. One block of (32, 8) threads owns
// a tile of 64 keys and 32 columns.
__global__ void turn_values_kernel(const float* v, const unsigned* most, int* few, __half* high,
                                   __half* low, float* scale, int S, int D, int padded) {
    __shared__ float tile[32][65];  // one more: a column lies in 32 banks
    int row0 = blockIdx.x * 64, col0 = blockIdx.y * 32, head = blockIdx.z;
    for (int r = threadIdx.y; r < 64; r += 8) {
        int row = row0 + r;
        size_t at = (size_t(head) * S + row) * D + col0 + threadIdx.x;
        tile[threadIdx.x][r] = row < S ? v[at] : 0.0f;
    }
    __syncthreads();  // the tile is there before it is read the other way
    int r = 2 * threadIdx.x;
    for (int c = threadIdx.y; c < 32; c += 8) {
        int row = head * D + col0 + c, exponent = exponent_of(__uint_as_float(most[row]));
        float up = ldexpf(1.0f, -exponent);
        if (row0 + r == 0) scale[row] = ldexpf(1.0f, exponent);
        float2 pair = {tile[c][r] * up, tile[c][r + 1] * up};
        __half2 near = __floats2half2_rn(pair.x, pair.y);
        float2 left = __half22float2(near);
        size_t at = size_t(row) * padded + row0 + r;
        *reinterpret_cast<__half2*>(high + at) = near;
        *reinterpret_cast<__half2*>(low + at) = __floats2half2_rn(pair.x - left.x, pair.y - left.y);
        int more = __reduce_add_sync(0xffffffffu, imprecise(pair.x) + imprecise(pair.y));
        if (threadIdx.x > 0 || !more) continue;
        int before = atomicAdd(&few[row], more);
        if (!too_wide(before, S) && too_wide(before + more, S)) high[at] = __float2half(NAN);
    }
}

// q, k and v as halves.
struct Split {
    int heads, S, D;
    Planes q, k, v;
    Scratch<unsigned> most;
    Scratch<int> few;

    Split(int heads, int S, int D)
        : heads(heads),
          S(S),
          D(D),
          q(heads * S, D),
          k(heads * S, D),
          v(heads * D, S),
          most(size_t(heads) * D),
          few(size_t(heads) * D) {}
    void values(const float* from) const {
        cudaMemsetAsync(most.data, 0, size_t(heads) * D * sizeof(unsigned));
        cudaMemsetAsync(few.data, 0, size_t(heads) * D * sizeof(int));
        dim3 parts((S + 255) / 256, heads), tiles(v.padded / 64, D / 32, heads), block(32, 8);
        column_most_of_heads_kernel<<<parts, 256>>>(from, most.data, S, D);
        turn_values_kernel<<<tiles, block>>>(from, most.data, few.data, v.high(), v.low(),
                                             v.scale(), S, D, v.padded);
    }
    static CUtensorMap map(const Planes& of, bool low, int rows) {
        return make_map(low ? of.low() : of.high(), of.rows, of.padded, rows);
    }
    Maps maps() const {
        return {{map(q, false, BM), map(q, true, BM)},
                {map(k, false, BN), map(k, true, BN)},
                {map(v, false, D), map(v, true, D)}};
    }
};

template <int D>
void attend(const Split& split, float* out, int causal) {
    auto kernel = flash_attention_hopper_kernel<D>;
    int bytes = sizeof(Shared<D>);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    dim3 grid((split.S + BM - 1) / BM, split.heads);
    Scales scales = {split.q.scale(), split.k.scale(), split.v.scale()};
    kernel<<<grid, THREADS, bytes>>>(split.maps(), scales, out, split.S, causal);
}

void flash_attention_hopper(const float* q, const float* k, const float* v, float* out, int heads,
                            int S, int D, int causal) {
    Split split(heads, S, D);
    split.q.split(q, D);
    split.k.split(k, D);
    split.values(v);
    D == 64 ? attend<64>(split, out, causal) : attend<128>(split, out, causal);
}
