#include "running_softmax.cuh"
#include "split.cuh"
#include "tensor_cores.cuh"
#include "warpgroup.cuh"

constexpr int BM = 128, BN = 32;  // a block owns BM queries, and walks over BN keys
constexpr int THREADS = 2 * BM;   // 8 warps, 16 queries each
constexpr float WEIGHTS = 16384;  // what weights are multiplied by, so that low halves keep bits

// A tile of keys and one of values as halves, high and low, in chunks of 8. What k is multiplied
// by, row by row; of v the largest magnitude, as its bits, and how many elements have too few.
template <int D>
struct Tiles {
    uint4 k[2][BN][D / 8], v[2][BN][D / 8];
    float k_scale[BN];
    unsigned v_most[2];  // by the parity of the tile
    int v_few[2];

    // Where a chunk lies: 8 rows of one chunk have banks of their own.
    static __device__ int at(int chunk, int row) { return chunk ^ row % 8; }
};

// What a thread brings of a tile: a quad of every STEP-th row. D / 4 lanes share a row.
template <int D>
struct Quads {
    static constexpr int LANES = D / 4, STEP = THREADS / LANES, ROWS = BN / STEP;
    float4 of[ROWS];

    static __device__ int row(int i) { return threadIdx.x / LANES + i * STEP; }
    static __device__ int lane() { return threadIdx.x % LANES; }
    // The lanes of the warp that share a row with this one.
    static __device__ unsigned row_mates() {
        return LANES == 32 ? 0xffffffffu : 0xffffu << threadIdx.x % 32 / LANES * LANES;
    }
    // x: (S, D) of this head; zeros from row `end` on.
    __device__ void load(const float* x, int first, int end) {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            int at = first + row(i);
            of[i] = at < end ? quad(x + size_t(at) * D + 4 * lane()) : float4{};
        }
    }
    // Of row(i), all lanes of which must call it: the bits of the largest magnitude.
    __device__ unsigned most(int i) const {
        return __reduce_max_sync(row_mates(), __float_as_uint(largest(of[i])));
    }
};

// Row(i) of a tile, divided by 2^exponent. Returns how many elements of the row have too few bits.
template <int D>
__device__ inline int store_halves(uint4 (&tile)[2][BN][D / 8], const Quads<D>& quads, int i,
                                   int exponent) {
    float up = ldexpf(1.0f, -exponent);
    float4 v = quads.of[i], scaled = {v.x * up, v.y * up, v.z * up, v.w * up};
    Halves two = halves(scaled);
    int row = Quads<D>::row(i), lane = Quads<D>::lane(), chunk = Tiles<D>::at(lane / 2, row);
    reinterpret_cast<uint2*>(&tile[0][row][chunk])[lane % 2] = two.high;
    reinterpret_cast<uint2*>(&tile[1][row][chunk])[lane % 2] = two.low;
    return __reduce_add_sync(Quads<D>::row_mates(), imprecise(scaled));
}

// Registers -> shared memory: the tile of keys and values that begins with key `first`; the next
// one is on its way to the registers then. All threads of the block must call it. Returns what sums
// of these values are multiplied by.
template <int D>
__device__ inline float bring(Tiles<D>& tiles, Quads<D>& keys, Quads<D>& values, const float* k,
                              const float* v, int first, int seen) {
    int parity = first / BN % 2;
    bool leads = Quads<D>::lane() == 0;
#pragma unroll
    for (int i = 0; i < Quads<D>::ROWS; i++) {
        unsigned most = values.most(i);
        if (leads) atomicMax(&tiles.v_most[parity], most);
    }
    __syncthreads();  // all have read the last tile, and say how large this one is
    int exponent = exponent_of(__uint_as_float(tiles.v_most[parity]));
#pragma unroll
    for (int i = 0; i < Quads<D>::ROWS; i++) {
        int few = store_halves<D>(tiles.v, values, i, exponent);
        if (leads) atomicAdd(&tiles.v_few[parity], few);
        int of_key = exponent_of(__uint_as_float(keys.most(i)));
        few = store_halves<D>(tiles.k, keys, i, of_key);
        if (leads) tiles.k_scale[Quads<D>::row(i)] = scale_of(of_key, few, D);
    }
    if (threadIdx.x == 0) tiles.v_most[parity ^ 1] = 0, tiles.v_few[parity ^ 1] = 0;
    __syncthreads();  // the tile is there
    keys.load(k, first + BN, seen);
    values.load(v, first + BN, seen);
    return scale_of(exponent, tiles.v_few[parity], BN * D) / WEIGHTS;
}

// Two rows of q as left factors of 16 columns each, high and low.
template <int D>
struct Queries {
    unsigned of[D / 16][2][4];
    float scale[2];

    __device__ Queries(const float* q, const Patch& mine, int S) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float* from = q + size_t(min(mine.row(2 * h), S - 1)) * D + mine.left;
            float most = 0.0f;
            for (int d = 0; d < D; d += 8) {
                most = fmaxf(most, fmaxf(fabsf(from[d]), fabsf(from[d + 1])));
            }
            int exponent = exponent_of(quad_max(most)), few = 0;
            float up = ldexpf(1.0f, -exponent);
#pragma unroll
            for (int d = 0; d < D; d += 8) {
                float2 two = {from[d] * up, from[d + 1] * up};
                few += imprecise(two.x) + imprecise(two.y);
                Halves both = halves({two.x, two.y, 0.0f, 0.0f});
                of[d / 16][0][h + d / 8 % 2 * 2] = both.high.x;
                of[d / 16][1][h + d / 8 % 2 * 2] = both.low.x;
            }
            scale[h] = scale_of(exponent, int(quad_sum(few)), D) * 1.44269504f * rsqrtf(D);
        }
    }
};

// s = q * k^T of a tile, as exponents of 2; -inf for keys that a query does not see.
template <int D>
__device__ inline void multiply(float (&s)[BN / 2], const Queries<D>& q, const Tiles<D>& tiles,
                                const Patch& mine, int seen, int causal) {
    int lane = threadIdx.x % 32, row = lane % 8, right = lane / 8;
#pragma unroll
    for (int n = 0; n < BN / 8; n++) {
        float large[4] = {}, small[4] = {};  // a tensor core truncates: small ones apart
#pragma unroll
        for (int d = 0; d < D / 16; d += 2) {
            unsigned high[4], low[4];
            int chunk = Tiles<D>::at(2 * d + right, row);
            load_matrices(high, &tiles.k[0][8 * n + row][chunk]);
            load_matrices(low, &tiles.k[1][8 * n + row][chunk]);
#pragma unroll
            for (int j = 0; j < 2; j++) {
                mma_f16(small, q.of[d + j][0], {low[2 * j], low[2 * j + 1]});
                mma_f16(small, q.of[d + j][1], {high[2 * j], high[2 * j + 1]});
                mma_f16(large, q.of[d + j][0], {high[2 * j], high[2 * j + 1]});
            }
        }
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int i = 4 * n + e, key = mine.col(i);
            bool hidden = key >= seen || (causal && key > mine.row(i));
            float scale = q.scale[e / 2] * tiles.k_scale[mine.at(i)];
            s[i] = hidden ? -INFINITY : (large[e] + small[e]) * scale;
        }
    }
}

// o = o * shrink + weights * v * scale. shrink: of both rows
template <int D>
__device__ inline void add_values(float (&o)[D / 2], float2 shrink, const float (&weights)[BN / 2],
                                  const Tiles<D>& tiles, float scale) {
    unsigned left[BN / 16][2][4];  // scores lie as left factors do
#pragma unroll
    for (int i = 0; i < BN / 2; i += 2) {
        Halves both = halves({weights[i] * WEIGHTS, weights[i + 1] * WEIGHTS, 0.0f, 0.0f});
        left[i / 8][0][i / 2 % 4] = both.high.x;
        left[i / 8][1][i / 2 % 4] = both.low.x;
    }
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < D / 8; n += 2) {
        float large[2][4] = {}, small[2][4] = {};
#pragma unroll
        for (int k = 0; k < BN / 16; k++) {
            unsigned high[4], low[4];
            int row = 16 * k + lane % 16, chunk = Tiles<D>::at(n + lane / 16, row);
            load_transposed(high, &tiles.v[0][row][chunk]);
            load_transposed(low, &tiles.v[1][row][chunk]);
#pragma unroll
            for (int j = 0; j < 2; j++) {
                mma_f16(small[j], left[k][0], {low[2 * j], low[2 * j + 1]});
                mma_f16(small[j], left[k][1], {high[2 * j], high[2 * j + 1]});
                mma_f16(large[j], left[k][0], {high[2 * j], high[2 * j + 1]});
            }
        }
#pragma unroll
        for (int e = 0; e < 8; e++) {
            float& sum = o[4 * n + e];
            float part = large[e / 4][e % 4] + small[e / 4][e % 4];
            sum = sum * (e / 2 % 2 ? shrink.y : shrink.x) + part * scale;
        }
    }
}

// q, k, v, out: (heads, S, D), at multiples of 16 bytes. out = softmax(q * k^T / sqrt(D)) * v.
// causal: queries see keys up to their own position. Where halves cannot hold the range of a row of
// q or k, or of BN rows of v, results that need it are NaN.
// One thread owns two queries' every fourth pair of columns. One block owns BM queries of a head.
template <int D>
__global__ void __launch_bounds__(THREADS)
    flash_attention_kernel(const float* q, const float* k, const float* v, float* out, int S,
                           int causal) {
    __shared__ Tiles<D> tiles;
    int row0 = (gridDim.x - 1 - blockIdx.x) * BM;  // the longest walks first
    int seen = causal ? min(S, row0 + BM) : S;
    size_t head = size_t(blockIdx.y) * S * D;
    Patch mine(row0 + threadIdx.x / 128 * 64, 0);
    int last = row0 + threadIdx.x / 32 * 16 + 15;  // of the warp's queries
    Queries<D> queries(q + head, mine, S);
    Quads<D> keys, values;
    keys.load(k + head, 0, seen);
    values.load(v + head, 0, seen);
    Softmax running;
    float o[D / 2] = {};
    if (threadIdx.x == 0) tiles.v_most[0] = 0, tiles.v_few[0] = 0;
    __syncthreads();  // before anyone counts
    for (int first = 0; first < seen; first += BN) {
        float scale = bring<D>(tiles, keys, values, k + head, v + head, first, seen);
        if (causal && first > last) continue;
        float s[BN / 2];
        mine.col0 = first;
        multiply<D>(s, queries, tiles, mine, S, causal);
        float2 shrink = running.weigh(s);
        add_values<D>(o, shrink, s, tiles, scale);
    }
    float part[2] = {1.0f / quad_sum(running.sum[0]), 1.0f / quad_sum(running.sum[1])};
#pragma unroll
    for (int i = 0; i < D / 2; i += 2) {
        float by = part[i / 2 % 2];
        float2* to = reinterpret_cast<float2*>(out + head + size_t(mine.row(i)) * D + mine.at(i));
        if (mine.row(i) < S) *to = {o[i] * by, o[i + 1] * by};
    }
}

void flash_attention_mma(const float* q, const float* k, const float* v, float* out, int heads,
                         int S, int D, int causal) {
    dim3 grid((S + BM - 1) / BM, heads);
    auto kernel = D == 64 ? flash_attention_kernel<64> : flash_attention_kernel<128>;
    kernel<<<grid, THREADS>>>(q, k, v, out, S, causal);
}
