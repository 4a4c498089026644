#include "exp2.cuh"
#include "hopper.cuh"
#include "scratch.cuh"
#include "warpgroup.cuh"

constexpr int BM = 128, BN = 128;               // a block owns BM queries, and walks over BN keys
constexpr int CONSUMERS = 2;                    // warpgroups that multiply, 64 queries each
constexpr int THREADS = 128 * (CONSUMERS + 1);  // and one that brings tiles
constexpr int STAGES = 2;                       // tiles of keys, and of values

// Tiles as products read them, rows of 128 bytes, in chunks of 64 columns.
template <int D>
struct alignas(1024) Shared {
    __nv_bfloat16 q[D / 64][BM][64], k[STAGES][D / 64][BN][64], v[STAGES][BN / 64][D][64];
    Barrier q_full, k_full[STAGES], k_empty[STAGES], v_full[STAGES], v_empty[STAGES];
};

// Of q and k: (heads * S, D); of v, transposed: (heads * D, padded).
struct Maps {
    CUtensorMap q, k, v;
};

// Where a round's tiles lie, and the parity of its phase.
struct Stage {
    int at, parity;

    __device__ explicit Stage(int round) : at(round % STAGES), parity(round / STAGES % 2) {}
};

// s = q * k^T of a tile, begun.
template <int D>
__device__ inline void begin_scores(float (&s)[BN / 2], Shared<D>& tiles, Stage stage, int top) {
    barrier_wait(&tiles.k_full[stage.at], stage.parity);
    wgmma_fence();
#pragma unroll
    for (int d = 0; d < D; d += 16) {
        wgmma_bf16(s, make_descriptor(&tiles.q[d / 64][top][d % 64]),
                   make_descriptor(&tiles.k[stage.at][d / 64][0][d % 64]), d > 0);
    }
    wgmma_commit();
}

// o += weights * v of a tile, begun.
template <int D>
__device__ inline void begin_values(float (&o)[D / 2], const unsigned (&weights)[BN / 16][4],
                                    Shared<D>& tiles, Stage stage) {
    barrier_wait(&tiles.v_full[stage.at], stage.parity);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < BN; k += 16) {
        wgmma_bf16(o, weights[k / 16], make_descriptor(&tiles.v[stage.at][k / 64][0][k % 64]), 1);
    }
    wgmma_commit();
}

// Brings q once, then keys and values tile by tile. One thread calls it.
template <int D>
__device__ void bring(Shared<D>& tiles, const Maps& maps, int head, int q0, int S, int rounds) {
    barrier_arrive_expect(&tiles.q_full, sizeof(tiles.q));
    for (int c = 0; c < D / 64; c++) {
        load_tile(tiles.q[c], &maps.q, 64 * c, head * S + q0, &tiles.q_full);
    }
    for (int j = 0; j < rounds; j++) {
        Stage stage(j);
        Barrier *k_full = &tiles.k_full[stage.at], *v_full = &tiles.v_full[stage.at];
        barrier_wait(&tiles.k_empty[stage.at], stage.parity ^ 1);
        barrier_arrive_expect(k_full, sizeof(tiles.k[0]));
        for (int c = 0; c < D / 64; c++) {
            load_tile(tiles.k[stage.at][c], &maps.k, 64 * c, head * S + j * BN, k_full);
        }
        barrier_wait(&tiles.v_empty[stage.at], stage.parity ^ 1);
        barrier_arrive_expect(v_full, sizeof(tiles.v[0]));
        for (int c = 0; c < BN / 64; c++) {
            load_tile(tiles.v[stage.at][c], &maps.v, j * BN + 64 * c, head * D, v_full);
        }
    }
}

// A warp has waited for the products that read a tile: one lane says so.
__device__ inline void let_go(Barrier* empty) {
    if (threadIdx.x % 32 == 0) barrier_arrive(empty);
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

// The running maximum and sum of the two rows that a thread has a part of.
struct Softmax {
    float scale, most[2] = {-INFINITY, -INFINITY}, sum[2] = {};

    // Scores become weights. Returns what o of both rows shrinks by.
    __device__ float2 weigh(float (&s)[BN / 2]) {
        float tops[2] = {-INFINITY, -INFINITY}, base[2], shrink[2];
#pragma unroll
        for (int i = 0; i < BN / 2; i++) tops[i / 2 % 2] = fmaxf(tops[i / 2 % 2], s[i]);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float now = fmaxf(most[h], quad_max(tops[h]) * scale);
            base[h] = now == -INFINITY ? 0.0f : now;
            shrink[h] = most[h] == -INFINITY ? 0.0f : exp2_or_0(most[h] - now);
            most[h] = now;
            sum[h] *= shrink[h];
        }
#pragma unroll
        for (int i = 0; i < BN / 2; i++) {
            s[i] = exp2_or_0(s[i] * scale - base[i / 2 % 2]);
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

// Weights as the next product wants its left factor in registers.
__device__ inline void take(unsigned (&weights)[BN / 16][4], const float (&s)[BN / 2]) {
#pragma unroll
    for (int i = 0; i < BN / 2; i += 2) {
        __nv_bfloat162 pair = __floats2bfloat162_rn(s[i], s[i + 1]);
        weights[i / 8][i / 2 % 4] = reinterpret_cast<unsigned&>(pair);
    }
}

// out: of this head
template <int D>
__device__ inline void store_rows(float* out, const float (&o)[D / 2], const float (&sum)[2],
                                  const Patch& mine, int S) {
    float part[2] = {1.0f / quad_sum(sum[0]), 1.0f / quad_sum(sum[1])};
#pragma unroll
    for (int i = 0; i < D / 2; i += 2) {
        int row = mine.row(i), d = mine.at(i);
        float by = part[i / 2 % 2];
        float2 pair = {o[i] * by, o[i + 1] * by};
        if (row < S) *reinterpret_cast<float2*>(out + size_t(row) * D + d) = pair;
    }
}

// All threads of the block must call it.
template <int D>
__device__ void prepare(Shared<D>& tiles) {
    if (threadIdx.x == 0) {
        barrier_init(&tiles.q_full, 1);
        for (int s = 0; s < STAGES; s++) {
            barrier_init(&tiles.k_full[s], 1);
            barrier_init(&tiles.v_full[s], 1);
            barrier_init(&tiles.k_empty[s], 4 * CONSUMERS);  // a lane of each warp
            barrier_init(&tiles.v_empty[s], 4 * CONSUMERS);
        }
        fence_barriers();
    }
    __syncthreads();  // the barriers are there before anyone waits at them
}

// out: (heads, S, D), at a multiple of 8 bytes: of each query, softmax over the keys, times v;
// causal: over keys up to its own position. q and k begin at multiples of 16 bytes, v of 4.
// One thread owns two queries' every fourth pair of columns, if its warpgroup multiplies: that owns
// 64 queries, and takes the softmax of one tile while the tensor cores add the values of the one
// before. One block owns BM queries of a head, of which there are 65,535 at most.
template <int D>
__global__ void __launch_bounds__(THREADS, 1)
    flash_attention_bf16_kernel(const __grid_constant__ Maps maps, float* out, int S, int causal) {
    extern __shared__ __align__(1024) unsigned char memory[];
    Shared<D>& tiles = *reinterpret_cast<Shared<D>*>(memory);
    prepare(tiles);
    int head = blockIdx.y, q0 = (gridDim.x - 1 - blockIdx.x) * BM;  // the longest walks first
    int keys = causal ? min(S, q0 + BM) : S, rounds = (keys + BN - 1) / BN;
    if (threadIdx.x / 128 == CONSUMERS) {
        fewer_registers<24>();
        if (threadIdx.x % 128 == 0) bring<D>(tiles, maps, head, q0, S, rounds);
        return;
    }
    more_registers<240>();
    int top = threadIdx.x / 128 * 64;
    Patch mine(q0 + top, 0);
    Softmax softmax{1.44269504f * rsqrtf(D)};  // exponents are of 2
    float o[D / 2] = {}, s[BN / 2];
    unsigned weights[BN / 16][4];
    barrier_wait(&tiles.q_full, 0);
    begin_scores<D>(s, tiles, Stage(0), top);
    wgmma_wait<0>();
    let_go(&tiles.k_empty[0]);
    hide(s, mine, 0, S, causal);
    softmax.weigh(s);
    take(weights, s);
    for (int j = 1; j < rounds; j++) {
        begin_scores<D>(s, tiles, Stage(j), top);
        begin_values<D>(o, weights, tiles, Stage(j - 1));
        wgmma_wait<1>();  // for the scores: values are added while their softmax is taken
        let_go(&tiles.k_empty[Stage(j).at]);
        hide(s, mine, j * BN, S, causal);
        float2 shrink = softmax.weigh(s);
        wgmma_wait<0>();
        let_go(&tiles.v_empty[Stage(j - 1).at]);
        take(weights, s);
#pragma unroll
        for (int i = 0; i < D / 2; i++) o[i] *= i / 2 % 2 ? shrink.y : shrink.x;
    }
    begin_values<D>(o, weights, tiles, Stage(rounds - 1));
    wgmma_wait<0>();
    store_rows<D>(out + size_t(head) * S * D, o, softmax.sum, mine, S);
}

// v: (heads, S, D), turned: (heads * D, padded), zeros from S on. One thread owns a pair of columns
// of 8 rows to load, then a pair of rows of 8 columns to store. One block of (32, 8) threads owns a
// tile of 64 keys and 64 columns.
__global__ void turn_halves_kernel(const __nv_bfloat16* v, __nv_bfloat16* turned, int S, int D,
                                   int padded) {
    __shared__ unsigned tile[64][33];  // pairs: of even rows, then of odd ones; one more for banks
    int row0 = blockIdx.x * 64, col0 = blockIdx.y * 64, head = blockIdx.z, x = threadIdx.x;
    for (int r = threadIdx.y; r < 64; r += 8) {
        const __nv_bfloat16* from = v + (size_t(head) * S + row0 + r) * D + col0;
        tile[r % 2 * 32 + r / 2][x] = row0 + r < S ? reinterpret_cast<const unsigned*>(from)[x] : 0;
    }
    __syncthreads();  // the tile is there before it is read the other way
    for (int c = threadIdx.y; c < 64; c += 8) {
        unsigned one = tile[x][c / 2], next = tile[32 + x][c / 2];
        __nv_bfloat16* to = turned + (size_t(head) * D + col0 + c) * padded + row0;
        bool upper = c % 2;  // halves of the two words
        reinterpret_cast<unsigned*>(to)[x] =
            upper ? one >> 16 | (next & 0xffff0000u) : (one & 0xffffu) | next << 16;
    }
}

template <int D>
void attend(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v, float* out,
            int heads, int S, int causal) {
    int padded = (S + 63) / 64 * 64, bytes = sizeof(Shared<D>);
    Scratch<__nv_bfloat16> turned(size_t(heads) * D * padded);
    dim3 tiles(padded / 64, D / 64, heads), block(32, 8), grid((S + BM - 1) / BM, heads);
    turn_halves_kernel<<<tiles, block>>>(v, turned.data, S, D, padded);
    auto kernel = flash_attention_bf16_kernel<D>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    Maps maps = {make_map(q, heads * S, D, BM), make_map(k, heads * S, D, BN),
                 make_map(turned.data, heads * D, padded, D)};
    kernel<<<grid, THREADS, bytes>>>(maps, out, S, causal);
}

void flash_attention_bf16(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                          float* out, int heads, int S, int D, int causal) {
    auto of_width = D == 64 ? attend<64> : attend<128>;
    of_width(q, k, v, out, heads, S, causal);
}
