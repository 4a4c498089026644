// Tiles of attention on Hopper, forwards and backwards: what a block owns and what it walks over,
// as two halves, and products of them. For the worked kernels
// `flash_attention_forward` and `flash_attention_backward`.
#pragma once

#include "hopper.cuh"
#include "running_softmax.cuh"
#include "split.cuh"
#include "warpgroup.cuh"

namespace attention {

constexpr int BM = 128, BN = 64;  // a block owns BM rows, and walks over tiles of BN others
constexpr int CONSUMERS = 2;      // warpgroups that multiply, 64 rows each
constexpr int THREADS = 128 * (CONSUMERS + 1);  // and one that brings tiles
constexpr int EACH = 4;                         // rows that a thread splits

// What a block computes rows of: out, the gradient of q, or those of k and v. Of the first two it
// owns rows of queries and walks over keys; of the last it owns rows of keys and walks over
// queries.
enum Result { OUT, DQ, DK_AND_DV };
__host__ __device__ constexpr bool owns_queries(Result of) { return of != DK_AND_DV; }

// Tiles as products read them: of q and grad_out, or of k and v; high halves, then low ones, in
// chunks of 64 columns.
template <int D>
struct alignas(1024) Shared {
    __half own[2][2][D / 64][BM][64], others[2][2][D / 64][BN][64];
    float2 scales[BN];   // of the others: of their two tensors
    float4 queries[BN];  // see Rows, where the others are queries
    Barrier own_full, full[2], empty[2];
};

// Halves of q and grad_out, or of k and v: (heads * padded, D), high and low.
struct Maps {
    CUtensorMap own[2][2], others[2][2];
};

// All (heads * padded). own, others: what the halves of a row of q and of grad_out, or of k and of
// v, are multiplied by. queries: row_max, 1 / row_sum, and the sum of grad_out * out, if queries
// are walked over. shifts: of queries, what the centre of k takes off all scores, as exponents
// of 2. centre: of v, (heads, D)
struct Rows {
    const float2 *own, *others;
    const float4* queries;
    const float *shifts, *centre;
};

// s = a * b^T of a tile: three products of halves, promoted to floats every 64 of D. Those of low
// halves come first: a tensor core cuts off what a sum cannot hold, and theirs are small.
template <int D>
__device__ inline void multiply(float (&s)[BN / 2], const __half (&a)[2][D / 64][BM][64],
                                const __half (&b)[2][D / 64][BN][64], int top) {
#pragma unroll
    for (int c = 0; c < D / 64; c++) {
        float part[BN / 2];
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 12; i++) {
            int low_a = i < 8 && i % 2, low_b = i < 8 && i % 2 == 0,
                d = i < 8 ? i / 2 * 16 : i % 4 * 16;
            wgmma_f16(part, make_descriptor(&a[low_a][c][top][d]),
                      make_descriptor(&b[low_b][c][0][d]), i > 0);
        }
        wgmma_commit();
        wgmma_wait<0>();
#pragma unroll
        for (int i = 0; i < BN / 2; i++) s[i] = c ? s[i] + part[i] : part[i];
    }
}

// A tile of factors as halves, in the registers of the next product.
struct Factors {
    unsigned high[BN / 16][4], low[BN / 16][4];
};

// sum = sum * shrink + factors * b of a tile whose rows lie along N; promoted to floats every 64 of
// K, or every 32.
template <int D, int K = BN>
__device__ inline void add_rows(float (&sum)[D / 2], float2 shrink, const Factors& factors,
                                const __half (&b)[2][D / 64][BN][64]) {
    constexpr int STEPS = K / 16;
    float part[D / 2];
#pragma unroll
    for (int first = 0; first < BN / 16; first += STEPS) {
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 3 * STEPS; i++) {
            bool high = i >= 2 * STEPS;
            int low_f = !high && i % 2, low_b = !high && i % 2 == 0;
            int k = first + (high ? i % STEPS : i / 2);
            wgmma_f16_mn(part, low_f ? factors.low[k] : factors.high[k],
                         make_descriptor_mn(&b[low_b][0][16 * k][0], sizeof(b[0][0])), i > 0);
        }
        wgmma_commit();
        wgmma_wait<0>();
#pragma unroll
        for (int i = 0; i < D / 2; i++) {
            float by = first ? 1.0f : i / 2 % 2 ? shrink.y : shrink.x;
            sum[i] = sum[i] * by + part[i];
        }
    }
}

// The running largest magnitude of the two rows that a thread has a part of: their sums are of
// factors that were divided by 2^exponent.
struct Range {
    float most[2] = {};

    // What the sums of both rows are to be multiplied by, and that by `by`.
    __device__ float2 scale(float2 by) const {
        return {ldexpf(by.x, exponent_of(most[0])), ldexpf(by.y, exponent_of(most[1]))};
    }
    // s becomes factors. Returns what the sums of both rows shrink by.
    __device__ float2 take(Factors& factors, const float (&s)[BN / 2]) {
        float tops[2] = {}, up[2], shrink[2];
#pragma unroll
        for (int i = 0; i < BN / 2; i++) tops[i / 2 % 2] = fmaxf(tops[i / 2 % 2], fabsf(s[i]));
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int before = exponent_of(most[h]);
            bool first = most[h] == 0.0f;
            most[h] = fmaxf(most[h], quad_max(tops[h]));
            int now = exponent_of(most[h]);
            up[h] = ldexpf(1.0f, -now);
            shrink[h] = first ? 1.0f : ldexpf(1.0f, before - now);
        }
#pragma unroll
        for (int i = 0; i < BN / 2; i += 2) {
            float by = up[i / 2 % 2];
            float2 v = {s[i] * by, s[i + 1] * by};
            __half2 high = __floats2half2_rn(v.x, v.y);
            float2 nearly = __half22float2(high);
            __half2 low = __floats2half2_rn(v.x - nearly.x, v.y - nearly.y);
            factors.high[i / 8][i / 2 % 4] = reinterpret_cast<unsigned&>(high);
            factors.low[i / 8][i / 2 % 4] = reinterpret_cast<unsigned&>(low);
        }
        return {shrink[0], shrink[1]};
    }
};

// The tiles that a block walks over.
struct Walk {
    int first, end;

    // Of a block whose rows begin with row0; causal: queries see keys up to their own position.
    __device__ Walk(Result of, int row0, int S, int causal)
        : first(causal && !owns_queries(of) ? row0 / BN : 0),
          end(((causal && owns_queries(of) ? min(S, row0 + BM) : S) + BN - 1) / BN) {}
};

// A row's halves, BN or BM rows of them, of one tensor.
template <int D, int ROWS>
__device__ inline void load_halves(__half (&tile)[2][D / 64][ROWS][64],
                                   const CUtensorMap (&maps)[2], int row, Barrier* full) {
    for (int i = 0; i < 2 * (D / 64); i++) {
        int part = i / (D / 64), c = i % (D / 64);
        load_tile(tile[part][c], &maps[part], 64 * c, row, full);
    }
}

// Scores become exponents of 2; of keys from S on, or behind a query's position if causal, -inf.
// scale: of both own rows. others: the first row of the tile that is walked over
template <int D, Result OF>
__device__ inline void scale_scores(float (&s)[BN / 2], const Shared<D>& tiles, float2 scale,
                                    const Patch& mine, int others, int S, int causal) {
    float by[2] = {scale.x * 1.44269504f * rsqrtf(D), scale.y * 1.44269504f * rsqrtf(D)};
    int own = mine.row(0) / 64 * 64;  // the first row of the warpgroup
    int keys = owns_queries(OF) ? others : own, queries = owns_queries(OF) ? own : others;
    bool all = keys + 64 <= S && (!causal || keys + 63 <= queries);  // nothing is hidden: no tests
#pragma unroll
    for (int i = 0; i < BN / 2; i++) s[i] *= by[i / 2 % 2] * tiles.scales[mine.at(i)].x;
    if (all) return;
#pragma unroll
    for (int i = 0; i < BN / 2; i++) {
        int row = mine.row(i), other = others + mine.at(i);
        int query = owns_queries(OF) ? row : other, key = owns_queries(OF) ? other : row;
        if (key >= S || (causal && key > query)) s[i] = -INFINITY;
    }
}

// Brings what the block owns once, then the others tile by tile. One thread calls it.
// start: the head's first row
template <int D, Result OF>
__device__ void bring(Shared<D>& tiles, const Maps& maps, Rows rows, int row0, int start,
                      Walk walk) {
    constexpr int OWN = OF == OUT ? 1 : 2;  // of q alone
    barrier_arrive_expect(&tiles.own_full, OWN * sizeof(tiles.own[0]));
    for (int which = 0; which < OWN; which++) {
        load_halves<D, BM>(tiles.own[which], maps.own[which], start + row0, &tiles.own_full);
    }
    constexpr int OF_ROWS = sizeof(tiles.scales) + (owns_queries(OF) ? 0 : sizeof(tiles.queries));
    for (int j = walk.first; j < walk.end; j++) {
        int parity = (j - walk.first) % 2, row = start + j * BN;
        for (int which = 0; which < 2; which++) {
            Barrier* full = &tiles.full[which];
            barrier_wait(&tiles.empty[which], parity ^ 1);
            barrier_arrive_expect(full, sizeof(tiles.others[0]) + (which == 0 ? OF_ROWS : 0));
            load_halves<D, BN>(tiles.others[which], maps.others[which], row, full);
            if (which == 1) continue;
            load_bytes(tiles.scales, rows.others + row, sizeof(tiles.scales), full);
            if (owns_queries(OF)) continue;
            load_bytes(tiles.queries, rows.queries + row, sizeof(tiles.queries), full);
        }
    }
}

// All threads of the block must call it.
template <int D>
__device__ void prepare(Shared<D>& tiles) {
    if (threadIdx.x == 0) {
        barrier_init(&tiles.own_full, 1);
        for (int which = 0; which < 2; which++) {
            barrier_init(&tiles.full[which], 1);
            barrier_init(&tiles.empty[which], 4 * CONSUMERS);  // a lane of each warp
        }
        fence_barriers();
    }
    __syncthreads();  // the barriers are there before anyone waits at them
}

// A warp has read a tile: one lane says so.
__device__ inline void let_go(Barrier* empty) {
    __syncwarp();  // what all lanes have loaded of it is there
    if (threadIdx.x % 32 == 0) barrier_arrive(empty);
}

// to: (S, D) of this head, at a multiple of 8 bytes. scale: of both rows; centre: (D), is added, or
// null
template <int D>
__device__ inline void store_rows(float* to, const float (&sum)[D / 2], float2 scale,
                                  const float* centre, const Patch& mine, int S) {
#pragma unroll
    for (int i = 0; i < D / 2; i += 2) {
        int row = mine.row(i), d = mine.at(i);
        float by = i / 2 % 2 ? scale.y : scale.x;
        float2 c = centre ? float2{centre[d], centre[d + 1]} : float2{};
        float2 pair = {sum[i] * by + c.x, sum[i + 1] * by + c.y};
        if (row < S) *reinterpret_cast<float2*>(to + size_t(row) * D + d) = pair;
    }
}

// What is split: (heads, S, D), at a multiple of 16 bytes, into halves (heads * padded, D) with
// zeros from S on, and a scale for each row, every second float of `scales`.
struct Source {
    const float* x;
    __half *high, *low;
    float* scales;
    float* centre;             // subtracted from each row: (heads, D); or null
    const float* keys_centre;  // that of k, if x is q
    float* shifts;             // see Rows
};
enum Tensor { K, V, Q, GRAD_OUT };
struct Sources {
    Source of[4];
};

// The sum of what the D / 4 lanes have that share a row. All lanes of a warp must call it.
template <int D>
__device__ inline float row_total(float x) {
#pragma unroll
    for (int step = D / 8; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

__device__ inline float dot(float4 a, float4 b) {
    return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

// One thread owns a quad of each of EACH rows, which are all on their way at once. D / 4 lanes own
// a row.
template <int D>
__global__ void __launch_bounds__(SPLITTERS)
    split_heads_kernel(Sources sources, int S, int padded) {
    constexpr int QUADS = D / 4, STEP = SPLITTERS / QUADS;  // rows of the block at once
    Source of = sources.of[blockIdx.z];
    int first = blockIdx.x * EACH * STEP + threadIdx.x / QUADS, lane = threadIdx.x % QUADS;
    unsigned row_mates = QUADS == 32 ? 0xffffffffu : 0xffffu << threadIdx.x % 32 / QUADS * QUADS;
    float4 v[EACH], c = {};
    if (of.centre) c = quad(of.centre + blockIdx.y * D + 4 * lane);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        int row = first + i * STEP;
        v[i] = row < S ? quad(of.x + (size_t(blockIdx.y) * S + row) * D + 4 * lane) : c;
        v[i] = {v[i].x - c.x, v[i].y - c.y, v[i].z - c.z, v[i].w - c.w};
    }
    if (of.keys_centre) c = quad(of.keys_centre + blockIdx.y * D + 4 * lane);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        unsigned most = __reduce_max_sync(row_mates, __float_as_uint(largest(v[i])));
        int exponent = exponent_of(__uint_as_float(most));
        float up = ldexpf(1.0f, -exponent);
        float4 scaled = {v[i].x * up, v[i].y * up, v[i].z * up, v[i].w * up};
        int few = __reduce_add_sync(row_mates, imprecise(scaled));  // with too few bits
        Halves h = halves(scaled);
        size_t row = size_t(blockIdx.y) * padded + first + i * STEP, at = row * D + 4 * lane;
        *reinterpret_cast<uint2*>(of.high + at) = h.high;
        *reinterpret_cast<uint2*>(of.low + at) = h.low;
        if (lane == 0) of.scales[2 * row] = scale_of(exponent, few, D);
        if (!of.keys_centre) continue;
        float shift = row_total<D>(dot(v[i], c)) * (1.44269504f * rsqrtf(D));
        if (lane == 0) of.shifts[row] = shift;
    }
}

// Of k and v: the mean of each column that lies far from 0, else 0. It is subtracted from all
// values: what a tensor core truncates then has both signs, and does not add up. Without that of k,
// all scores of a query are less by the same, and weights stay; that of v is added to the result,
// since weights have the sum 1. Gradients of a query's scores have the sum 0, so neither is
// missing. One thread owns every 32nd row of a column. One block owns 32 columns of a head.
template <int D>
__global__ void centre_kernel(Sources sources, int S) {
    __shared__ float sums[32][32], tops[32][32];
    int column = blockIdx.x * 32 + threadIdx.x;
    Source of = sources.of[blockIdx.z];
    const float* x = of.x + size_t(blockIdx.y) * S * D + column;
    float sum = 0.0f, most = 0.0f;
#pragma unroll 8
    for (int row = threadIdx.y; row < S; row += 32) {
        float value = x[size_t(row) * D];
        sum += value;
        most = fmaxf(most, fabsf(value));
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    tops[threadIdx.y][threadIdx.x] = most;
    __syncthreads();  // what all 32 warps have is there before the first one reads it
    if (threadIdx.y > 0) return;
    for (int i = 1; i < 32; i++) {
        sum += sums[i][threadIdx.x];
        most = fmaxf(most, tops[i][threadIdx.x]);
    }
    float mean = sum / S;
    bool far = isfinite(mean) && most <= 8.0f * fabsf(mean);
    of.centre[blockIdx.y * D + column] = far ? mean : 0.0f;
}

// Halves of two tensors with rows of the same kind, queries or keys.
template <int D>
struct Pair {
    int rows;
    Scratch<__half> halves;  // of the first, high and low; of the second
    Scratch<float2> scales;

    explicit Pair(int rows) : rows(rows), halves(size_t(4) * rows * D), scales(rows) {}
    __half* plane(int i) const { return halves.data + size_t(i) * rows * D; }
    Source source(const float* x, int which, float* centre = nullptr) const {
        float* to = reinterpret_cast<float*>(scales.data) + which;
        return {x, plane(2 * which), plane(2 * which + 1), to, centre, nullptr, nullptr};
    }
    void put(CUtensorMap (&maps)[2][2], int tile_rows) const {
        for (int i = 0; i < 4; i++) {
            maps[i / 2][i % 2] = make_map(plane(i), rows, D, tile_rows);
        }
    }
};

// What kernels read: of queries q and grad_out, of keys k and v. Of few heads at a time: halves of
// a row take 32 * D bytes, and a short sequence has padded rows alone.
template <int D>
struct Inputs {
    static constexpr int MOST_ROWS = 1 << 18;
    int S, padded, at_once, heads;  // heads: of this launch, at most at_once
    Pair<D> queries, keys;
    Scratch<float> shifts, centres;  // see Rows; of k and v: (2, at_once, D)

    Inputs(int all_heads, int S)
        : S(S),
          padded((S + BM - 1) / BM * BM),
          at_once(max(1, min(all_heads, MOST_ROWS / padded))),
          heads(at_once),
          queries(at_once * padded),
          keys(at_once * padded),
          shifts(at_once * padded),
          centres(2 * at_once * D) {}
    dim3 blocks(int rows) const { return dim3(padded / rows, heads); }
    float* centre_of_v() const { return centres.data + at_once * D; }

    // grad_out: null, for the forward
    void split(const float* q, const float* k, const float* v, const float* grad_out) const {
        Sources sources = {keys.source(k, 0, centres.data), keys.source(v, 1, centre_of_v()),
                           queries.source(q, 0), queries.source(grad_out, 1)};
        sources.of[Q].keys_centre = centres.data;
        sources.of[Q].shifts = shifts.data;
        centre_kernel<D><<<dim3(D / 32, heads, 2), dim3(32, 32)>>>(sources, S);
        dim3 grid = blocks(EACH * SPLITTERS / (D / 4));
        grid.z = grad_out ? 4 : 3;
        split_heads_kernel<D><<<grid, SPLITTERS>>>(sources, S, padded);
    }
    const Pair<D>& own(Result of) const { return owns_queries(of) ? queries : keys; }
    const Pair<D>& others(Result of) const { return owns_queries(of) ? keys : queries; }
    Maps maps(Result of) const {
        Maps maps;
        own(of).put(maps.own, BM);
        others(of).put(maps.others, BN);
        return maps;
    }
    Rows rows(Result of, const float4* of_queries) const {
        return {own(of).scales.data, others(of).scales.data, of_queries, shifts.data,
                centre_of_v()};
    }
};

// Has a kernel take as much shared memory as it needs, and returns that.
template <int D, class Kernel>
int shared_memory(Kernel kernel) {
    int bytes = sizeof(Shared<D>);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    return bytes;
}

}  // namespace attention
