// x * W^T for the tile of a block, in registers: exercise 03.6 as a function, with W read along K.
#pragma once

#include "quads.cuh"

constexpr int BM = 128, BN = 128, BK = 8;            // a block owns at most BM x BN elements,
constexpr int WM = 64, WN = 64;                      // each of its warps WM x WN,
constexpr int TM = 16, TN = 8;                       // each lane of a warp TM x TN
constexpr int LANES_M = WM / TM, LANES_N = WN / TN;  // a warp is 4 x 8 lanes
constexpr int THREADS = 32 * (BM / WM) * (BN / WN);  // 4 warps, in 2 rows and 2 columns
constexpr int QUADS = BM * BK / 4 / THREADS;         // that a thread brings of each tile in a round
constexpr int SIDE = BM + 4;                         // of a tile in shared memory, padded

// What this block and this thread own of out, (M, N). sums[i][j] belongs to row(i) and col(j): four
// neighbouring i are neighbouring rows, four neighbouring j are neighbouring columns.
struct Tile {
    int M, N;
    int row0, col0, right;  // the block owns columns col0 to right - 1, at most BN
    int top, left;          // the first patch of this thread, within the tile
    bool whole;             // all BM x BN elements lie inside of out, in quads

    // `size`: of the groups of columns that no two blocks may share.
    __device__ Tile(int M, int N, int size = 1) : M(M), N(N) {
        int warp = threadIdx.x / 32, lane = threadIdx.x % 32, columns = BN / size * size;
        row0 = blockIdx.x * BM;  // blocks of the same columns are neighbours, so they share W
        col0 = blockIdx.y * columns;
        right = min(N, col0 + columns);
        // Lanes 0 and 1 own other rows of the same columns, lanes 0 and 2 the reverse. So two
        // neighbours of a request to shared memory want the same quad, of x or of W.
        top = warp / (BN / WN) * WM + (lane / 16 * 2 + lane % 2) * 4;
        left = warp % (BN / WN) * WN + lane / 2 % LANES_N * 4;
        whole = row0 + BM <= M && col0 + BN <= right && N % 4 == 0;
    }
    __device__ int row(int i) const { return row0 + top + i / 4 * 4 * LANES_M + i % 4; }
    __device__ int col(int j) const { return col0 + left + j / 4 * 4 * LANES_N + j % 4; }
    __device__ bool owns(int i, int j) const { return row(i) < M && col(j) < right; }
};

// The grid: along x the tiles of the same columns, along y those of the same rows. No tile holds a
// group of more than BN columns: then there are no blocks, and CUDA refuses the launch.
inline dim3 tiles(int M, int N, int size = 1) {
    if (size < 1 || size > BN) return dim3(0, 0);
    int columns = BN / size * size;
    return dim3((M + BM - 1) / BM, (N + columns - 1) / columns);
}

// Global memory -> registers: this thread's quads of a tile of x or W. `first` is the first of them
// where k is 0, `rows` and `cols` how far the matrix reaches from there. Two threads bring 8
// neighbours of a row.
template <bool WHOLE>
__device__ inline void fetch(float4 (&quads)[QUADS], const float* first, int rows, int cols, int K,
                             int k) {
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
        const float* row = first + i * THREADS / 2 * K + k;
        quads[i] = WHOLE ? quad(row) : load4(row, rows - i * THREADS / 2, cols - k, 0, 0, false);
    }
}

// Registers -> shared memory. The tile is turned around: a row of it is one k.
__device__ inline void store_tile(const float4 (&quads)[QUADS], float (*tile)[SIDE]) {
    int row = threadIdx.x / 2, k = threadIdx.x % 2 * 4;
#pragma unroll
    for (int i = 0; i < QUADS; i++, row += THREADS / 2) {
        tile[k + 0][row] = quads[i].x;
        tile[k + 1][row] = quads[i].y;
        tile[k + 2][row] = quads[i].z;
        tile[k + 3][row] = quads[i].w;
    }
}

// Shared memory -> registers: what this lane needs of one k.
__device__ inline void load_fragments(const float* xs, const float* Ws, float (&a)[TM],
                                      float (&b)[TN]) {
#pragma unroll
    for (int i = 0; i < TM; i += 4) quad(&a[i]) = quad(&xs[i * LANES_M]);
#pragma unroll
    for (int j = 0; j < TN; j += 4) quad(&b[j]) = quad(&Ws[j * LANES_N]);
}

// The outer product. To and fro: each row begins with the b[j] that the one before ended with.
__device__ inline void add_products(float (&sums)[TM][TN], const float (&a)[TM],
                                    const float (&b)[TN]) {
#pragma unroll
    for (int i = 0; i < TM; i++) {
#pragma unroll
        for (int e = 0; e < TN; e++) {
            int j = i % 2 ? TN - 1 - e : e;
            sums[i][j] += a[i] * b[j];
        }
    }
}

// The loop over K. WHOLE: both tiles lie inside of their matrices, and K is a multiple of BK.
template <bool WHOLE>
__device__ inline void walk(float (&sums)[TM][TN], const Tile& tile, float (*shared)[2][BK][SIDE],
                            const float* x, const float* W, int K) {
    int row = threadIdx.x / 2, k_of_t = threadIdx.x % 2 * 4;  // the first quad that it brings
    int x_rows = tile.M - tile.row0 - row, W_rows = tile.N - tile.col0 - row;
    const float* x_first = x + (tile.row0 + row) * K + k_of_t;
    const float* W_first = W + (tile.col0 + row) * K + k_of_t;
    alignas(16) float a[2][TM], b[2][TN];
    float4 x_next[QUADS], W_next[QUADS];
    fetch<WHOLE>(x_next, x_first, x_rows, K - k_of_t, K, 0);
    fetch<WHOLE>(W_next, W_first, W_rows, K - k_of_t, K, 0);
    store_tile(x_next, shared[0][0]);
    store_tile(W_next, shared[0][1]);
    __syncthreads();  // the first tiles are complete
    load_fragments(&shared[0][0][0][tile.top], &shared[0][1][0][tile.left], a[0], b[0]);
    for (int k0 = 0, now = 0; k0 < K; k0 += BK) {
        // After the last round, the last tiles again, unused: cheaper than an `if`.
        int next = WHOLE ? min(k0 + BK, K - BK) : k0 + BK;
        fetch<WHOLE>(x_next, x_first, x_rows, K - k_of_t, K, next);
        fetch<WHOLE>(W_next, W_first, W_rows, K - k_of_t, K, next);
#pragma unroll
        for (int k = 0; k < BK; k++) {
            if (k == BK - 1) {
                now ^= 1;
                store_tile(x_next, shared[now][0]);
                store_tile(W_next, shared[now][1]);
                __syncthreads();  // the next tiles are complete, and everyone has read these
            }
            int ahead = (k + 1) % BK;
            load_fragments(&shared[now][0][ahead][tile.top], &shared[now][1][ahead][tile.left],
                           a[ahead % 2], b[ahead % 2]);
            add_products(sums, a[k % 2], b[k % 2]);
        }
    }
}

// sums += x * W^T, for the tile. x: (M, K), W: (N, K), both row-major.
__device__ inline void multiply(float (&sums)[TM][TN], const Tile& tile, const float* x,
                                const float* W, int K) {
    __shared__ alignas(16) float shared[2][2][BK][SIDE];  // two sets of tiles: of x, of W
    bool inside = tile.row0 + BM <= tile.M && tile.col0 + BN <= tile.N && K % BK == 0;
    if (inside) {
        walk<true>(sums, tile, shared, x, W, K);
    } else {
        walk<false>(sums, tile, shared, x, W, K);
    }
}

// y = the sums of row(0), and the others move up: the next call gives those of row(1). A loop
// cannot number registers: sums[i] with i from a loop would lie in memory. Written out for all rows
// it could, but then an epilogue has thousands of instructions that each run once.
__device__ inline void next_row(float (&y)[TN], float (&sums)[TM][TN]) {
#pragma unroll
    for (int j = 0; j < TN; j++) {
        y[j] = sums[0][j];
#pragma unroll
        for (int i = 0; i < TM - 1; i++) sums[i][j] = sums[i + 1][j];
    }
}
