#include "exp2.cuh"
#include "hopper.cuh"
#include "split.cuh"
#include "warpgroup.cuh"

constexpr int BM = 128, BN = 128;               // a block owns BM queries, and walks over BN keys
constexpr int CONSUMERS = 2;                    // warpgroups that multiply, 64 queries each
constexpr int THREADS = 128 * (CONSUMERS + 1);  // and one that brings tiles
constexpr int EACH = 4;                         // rows that a thread splits
constexpr float UP = 14.0f;                     // weights are kept as 2^14 times what they are

// Tiles as products read them, rows of 128 bytes: high halves, then low ones, in chunks of 64
// columns.
template <int D>
struct alignas(1024) Shared {
    __half q[2][D / 64][BM][64], k[2][D / 64][BN][64], v[2][BN / 64][D][64];
    float k_scale[BN];
    Barrier q_full, k_full, k_empty, v_full, v_empty;
};

// Halves of q and k: (heads * S, D); of v, transposed: (heads * D, padded); high and low.
struct Maps {
    CUtensorMap q[2], k[2], v[2];
};
struct Scales {
    const float *q, *k, *v;  // of rows of q and k, and of columns of v
    const int* few;          // elements of each column of v for which halves have too few bits
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
            shrink[h] = most[h] == -INFINITY ? 0.0f : exp2_or_0(most[h] - now);
            most[h] = now;
            sum[h] *= shrink[h];
        }
#pragma unroll
        for (int i = 0; i < BN / 2; i++) {
            s[i] = exp2_or_0(s[i] - base[i / 2 % 2]);
            sum[i / 2 % 2] += s[i];
        }
        return {shrink[0], shrink[1]};
    }
};

// Scores that a query must not see become -inf: of keys from S on and, if causal, of keys after
// its own position.
__device__ inline void hide(float (&s)[BN / 2], const Patch& mine, int key0, int S, int causal) {
    if (key0 + BN <= S && !(causal && key0 + BN > mine.row(0))) return;
#pragma unroll
    for (int i = 0; i < BN / 2; i++) {
        int key = key0 + mine.at(i);
        if (key >= S || (causal && key > mine.row(i))) s[i] = -INFINITY;
    }
}

// Whether a column of v is too wide for halves. A short one may well hold an element or two near 0
// by chance: it is too wide where more are imprecise, or half of it.
__device__ inline bool too_wide_for(int imprecise, int S) {
    return too_wide(imprecise, max(S, 64)) || (imprecise > 0 && 2 * imprecise >= S);
}

// out, v_scale, few: of this head. Each column of o has a scale; the sums hold 2^14, as o does. A
// column of v that is too wide for halves gives NaN.
template <int D>
__device__ inline void store_rows(float* out, const float (&o)[D / 2], const float (&sum)[2],
                                  const float* v_scale, const int* few, const Patch& mine, int S) {
    float part[2] = {1.0f / quad_sum(sum[0]), 1.0f / quad_sum(sum[1])};
    auto scale = [&](int d) { return too_wide_for(few[d], S) ? NAN : v_scale[d]; };
#pragma unroll
    for (int i = 0; i < D / 2; i += 2) {
        int row = mine.row(i), d = mine.at(i);
        float by = part[i / 2 % 2];
        float2 pair = {o[i] * by * scale(d), o[i + 1] * by * scale(d + 1)};
        if (row < S) *reinterpret_cast<float2*>(out + size_t(row) * D + d) = pair;
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

// out: (heads, S, D), at a multiple of 8 bytes: of each query, softmax over the keys, times v;
// causal: over keys up to its own position. Where halves cannot hold the range of a row of q or k,
// or of a column of v, results of it are NaN. There are at most 65,535 heads.
// One thread owns two queries' every fourth pair of columns, if its warpgroup multiplies: that owns
// 64 queries. One block owns BM queries of a head.
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
    size_t column = size_t(head) * D;
    store_rows<D>(out + column * S, o, softmax.sum, scales.v + column, scales.few + column, mine,
                  S);
}

// What a warp splits: rows of q, or of k, each as halves with a scale of its own.
struct Rows {
    const float* x;
    __half *high, *low;
    float* scale;
};

// q.x, k.x: (rows, D), at multiples of 16 bytes. One thread owns a quad of each of EACH rows, of q
// (blockIdx.y is 0) or of k, which are all on their way at once. D / 4 lanes own a row.
template <int D>
__global__ void __launch_bounds__(SPLITTERS) split_rows_kernel(Rows q, Rows k, int rows) {
    constexpr int QUADS = D / 4, STEP = SPLITTERS / QUADS;  // rows of the block at once
    Rows of = blockIdx.y ? k : q;
    int first = blockIdx.x * EACH * STEP + threadIdx.x / QUADS, lane = threadIdx.x % QUADS;
    unsigned row_mates = QUADS == 32 ? 0xffffffffu : 0xffffu << threadIdx.x % 32 / QUADS * QUADS;
    float4 v[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        int row = min(first + i * STEP, rows - 1);  // the last one again, where there is none
        v[i] = quad(of.x + size_t(row) * D + 4 * lane);
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        int row = first + i * STEP;
        unsigned most = __reduce_max_sync(row_mates, __float_as_uint(largest(v[i])));
        int exponent = exponent_of(__uint_as_float(most));
        float up = ldexpf(1.0f, -exponent);
        float4 scaled = {v[i].x * up, v[i].y * up, v[i].z * up, v[i].w * up};
        int few = __reduce_add_sync(row_mates, imprecise(scaled));  // with too few bits
        if (row >= rows) continue;  // its lanes are needed in the next turn
        Halves h = halves(scaled);
        size_t at = size_t(row) * QUADS + lane;
        reinterpret_cast<uint2*>(of.high)[at] = h.high;
        reinterpret_cast<uint2*>(of.low)[at] = h.low;
        if (lane == 0) of.scale[row] = scale_of(exponent, few, D);
    }
}

// v: (heads, S, D), at a multiple of 16 bytes. most[head * D + d] = the largest magnitude of column
// d, as the bits of a float; 0 before. One thread owns a quad of columns, in every (1024 / D)th row
// of the block's 128.
template <int D>
__global__ void __launch_bounds__(SPLITTERS)
    column_most_of_heads_kernel(const float* v, unsigned* most, int S) {
    constexpr int QUADS = D / 4, ROWS = SPLITTERS / QUADS;
    __shared__ alignas(16) float partials[ROWS][D];
    int first = blockIdx.x * 128, at = threadIdx.x / QUADS, col = threadIdx.x % QUADS * 4;
    const float* head = v + size_t(blockIdx.y) * S * D;
    float4 mine = {};
#pragma unroll
    for (int row = first + at; row < first + 128; row += ROWS) {
        float4 x = row < S ? quad(head + size_t(row) * D + col) : float4{};
        mine = {fmaxf(mine.x, fabsf(x.x)), fmaxf(mine.y, fabsf(x.y)), fmaxf(mine.z, fabsf(x.z)),
                fmaxf(mine.w, fabsf(x.w))};
    }
    quad(&partials[at][col]) = mine;
    __syncthreads();  // what all rows have is there before it is read down a column
    if (threadIdx.x >= D) return;
    float top = 0.0f;
    for (int i = 0; i < ROWS; i++) top = fmaxf(top, partials[i][threadIdx.x]);
    atomicMax(&most[blockIdx.y * D + threadIdx.x], __float_as_uint(top));
}

// high, low: (heads * D, padded): v, transposed, as halves, with zeros from S on; most, few, scale:
// (heads * D). few, 0 before, counts the elements for which halves have too few bits: the last
// kernel gives NaN for columns with too many. One thread owns a column of 8 rows to load, then 4
// pairs of rows to store. One block of (32, 8) threads owns a tile of 64 keys and 32 columns.
__global__ void turn_values_kernel(const float* v, const unsigned* most, int* few, __half* high,
                                   __half* low, float* scale, int S, int D, int padded) {
    __shared__ float tile[32][65];  // one more: what a warp writes lies in 32 banks
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
        if (threadIdx.x == 0 && more) atomicAdd(&few[row], more);
    }
}

// q, k and v as halves.
template <int D>
struct Split {
    int heads, S;
    Planes q, k, v;
    Scratch<unsigned>
        counts;  // of columns of v: the largest magnitudes, and how many are imprecise

    Split(int heads, int S)
        : heads(heads),
          S(S),
          q(heads * S, D),
          k(heads * S, D),
          v(heads * D, S),
          counts(size_t(2) * heads * D) {}
    static Rows rows(const float* x, const Planes& to) {
        return {x, to.high(), to.low(), to.scale()};
    }
    int* few() const { return reinterpret_cast<int*>(counts.data + size_t(heads) * D); }
    void queries_and_keys(const float* q_from, const float* k_from) const {
        int each = EACH * SPLITTERS / (D / 4);  // rows of a block
        dim3 parts((q.rows + each - 1) / each, 2);
        split_rows_kernel<D><<<parts, SPLITTERS>>>(rows(q_from, q), rows(k_from, k), q.rows);
    }
    void values(const float* from) const {
        unsigned* most = counts.data;
        cudaMemsetAsync(most, 0, size_t(2) * heads * D * sizeof(unsigned));
        dim3 parts((S + 127) / 128, heads), tiles(v.padded / 64, D / 32, heads), block(32, 8);
        column_most_of_heads_kernel<D><<<parts, SPLITTERS>>>(from, most, S);
        turn_values_kernel<<<tiles, block>>>(from, most, few(), v.high(), v.low(), v.scale(), S, D,
                                             v.padded);
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
void attend(const float* q, const float* k, const float* v, float* out, int heads, int S,
            int causal) {
    Split<D> split(heads, S);
    split.queries_and_keys(q, k);
    split.values(v);
    auto kernel = flash_attention_hopper_kernel<D>;
    int bytes = sizeof(Shared<D>);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    dim3 grid((S + BM - 1) / BM, heads);
    Scales scales = {split.q.scale(), split.k.scale(), split.v.scale(), split.few()};
    kernel<<<grid, THREADS, bytes>>>(split.maps(), scales, out, S, causal);
}

void flash_attention_hopper(const float* q, const float* k, const float* v, float* out, int heads,
                            int S, int D, int causal) {
    auto of_width = D == 64 ? attend<64> : attend<128>;
    of_width(q, k, v, out, heads, S, causal);
}
