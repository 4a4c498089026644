// x * W^T by tensor cores, for the tile of a block: from exercise 10.2, with tiles of halves that
// are copied while others are multiplied.
#pragma once

#include "split.cuh"
#include "tensor_cores.cuh"

constexpr int BM = 128, BN = 128, BK = 64;           // a block owns BM x BN elements of out,
constexpr int WM = 32, WN = 64;                      // each of its warps WM x WN
constexpr int THREADS = 32 * (BM / WM) * (BN / WN);  // 8 warps, in 4 rows and 2 columns
constexpr int CHUNKS = BK / 8;                       // of 8 halves, 16 bytes, in a tile's row
constexpr int TILE = 128 * CHUNKS;                   // chunks of a tile, of x or of W
constexpr int STAGES = 3;                            // sets of tiles: one in use, two on their way
constexpr int RING = STAGES * 4 * TILE * 16;         // bytes of all: high and low, of x and of W

// Where a chunk of a tile lies, counted in chunks.
__device__ inline int swizzled(int row, int chunk) { return row * CHUNKS + (chunk ^ row % 8); }

// What this block and this lane own of out, (M, N): sums[i][4 * j + e] is at row(i, e), col(j, e).
struct Patch {
    int row0, col0;  // of the block
    int top, left;   // of the warp, within the block's tile
    int lane;

    __device__ Patch() {
        int warp = threadIdx.x / 32;
        row0 = blockIdx.x * BM;  // blocks of the same columns are neighbours, so they share W
        col0 = blockIdx.y * BN;
        top = warp / (BN / WN) * WM;
        left = warp % (BN / WN) * WN;
        lane = threadIdx.x % 32;
    }
    __device__ int row(int i, int e) const { return row0 + top + 16 * i + e / 2 * 8 + lane / 4; }
    __device__ int col(int j, int e) const { return col0 + left + 8 * j + lane % 4 * 2 + e % 2; }
};

// x: (M, K) and W: (N, K), as floats and as planes of halves (M, padded), (N, padded).
struct Operands {
    const float *x, *W;
    const __half* planes[4];  // x high, x low, W high, W low
    const float *x_scale, *W_scale;
    int M, N, K, padded;

    Operands(const float* x, const Planes& xs, const float* W, const Planes& Ws, int K)
        : x(x),
          W(W),
          planes{xs.high(), xs.low(), Ws.high(), Ws.low()},
          x_scale(xs.scale()),
          W_scale(Ws.scale()),
          M(xs.rows),
          N(Ws.rows),
          K(K),
          padded(xs.padded) {}

    // Sums over halves become elements of x * W^T, 0 outside of it. Where that is not finite, it is
    // added up again in floats: halves of an infinity leave inf - inf, which is NaN, and a row
    // whose range is too wide for halves has a scale of NaN. All 32 lanes of the warp must call it.
    __device__ void scale(float (&sums)[2][32], const Patch& patch) const {
        bool finite = true;
#pragma unroll
        for (int i = 0; i < 2; i++) {
#pragma unroll
            for (int e = 0; e < 32; e++) {
                int row = patch.row(i, e % 4), col = patch.col(e / 4, e % 4);
                bool inside = row < M && col < N;
                sums[i][e] = inside ? sums[i][e] * x_scale[row] * W_scale[col] : 0.0f;
                finite &= isfinite(sums[i][e]);
            }
        }
        // Asked once: a branch at each element would wait for its scales alone.
        if (__all_sync(0xffffffffu, finite)) return;
        // In memory, where they have an index. An array of its own type: nvcc merges arrays of one
        // type that inlined functions hold, and sums of products would lie in memory, too.
        float again[64];
#pragma unroll
        for (int i = 0; i < 64; i++) again[i] = sums[i / 32][i % 32];
        add_again(again, patch);
#pragma unroll
        for (int i = 0; i < 64; i++) sums[i / 32][i % 32] = again[i];
    }

   private:
    // Two of a lane's elements at once, which lie side by side, in a tile of 8 x 8.
    __device__ __noinline__ void add_again(float (&y)[64], Patch patch) const {
        Floats of_x = {x, size_t(K), 1}, of_W = {W, size_t(K), 1};
        for (int i = 0; i < 64; i += 2) {
            int row0 = patch.row(i / 32, i % 4) - patch.lane / 4;
            int col0 = patch.col(i % 32 / 4, 0) - patch.lane % 4 * 2;
            float2 sum = add_in_floats({y[i], y[i + 1]}, of_x, row0, M, of_W, col0, N, K);
            y[i] = sum.x, y[i + 1] = sum.y;
        }
    }
};

// Begins to copy the four tiles of `round` into their place in the ring, and commits.
__device__ inline void bring(uint4* ring, const Patch& patch, const Operands& in, int round) {
    uint4* tiles = ring + round % STAGES * 4 * TILE;
    if (round * BK < in.padded) {
#pragma unroll
        for (int p = 0; p < 4; p++) {
            int first = p < 2 ? patch.row0 : patch.col0, rows = p < 2 ? in.M : in.N;
#pragma unroll
            for (int i = 0; i < TILE; i += THREADS) {  // unrolled: the same for every thread
                int row = (threadIdx.x + i) / CHUNKS, chunk = threadIdx.x % CHUNKS;
                bool inside = first + row < rows;
                const __half* from = in.planes[p] + size_t(inside ? first + row : 0) * in.padded;
                copy_async(&tiles[p * TILE + swizzled(row, chunk)], from + round * BK + chunk * 8,
                           inside ? 16 : 0);
            }
        }
    }
    commit_copies();  // also where there is nothing left: wait_for_copies counts groups
}

// Shared memory -> registers: 32 rows of a tile of x, or 64 of W, and 16 columns of them.
__device__ inline void load_x(unsigned (&a)[2][4], const uint4* tile, const Patch& patch, int k) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int row = patch.top + 16 * i + patch.lane % 16;
        load_matrices(a[i], &tile[swizzled(row, k + patch.lane / 16)]);
    }
}
__device__ inline void load_W(unsigned (&b)[4][4], const uint4* tile, const Patch& patch, int k) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
        int row = patch.left + 16 * j + patch.lane / 16 * 8 + patch.lane % 8;
        load_matrices(b[j], &tile[swizzled(row, k + patch.lane / 8 % 2)]);
    }
}

// sums += a * b, 2 x 8 products.
__device__ inline void add_products(float (&sums)[2][32], const unsigned (&a)[2][4],
                                    const unsigned (&b)[4][4]) {
#pragma unroll
    for (int j = 0; j < 8; j++) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float (&d)[4] = reinterpret_cast<float (&)[4]>(sums[i][4 * j]);
            mma_f16(d, a[i], {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]});
        }
    }
}

// The grid of blocks, for (M, N).
inline dim3 tiles(int M, int N) { return dim3((M + BM - 1) / BM, (N + BN - 1) / BN); }

// Allows a kernel so much shared memory as the ring needs.
template <class Kernel>
void allow_ring(Kernel kernel) {
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, RING);
}
