// Tiles whose owners are warps: sizes, and the ways into shared memory and out. From exercise 03.4.
#pragma once

#include "quads.cuh"

constexpr int BM = 128, BN = 128, BK = 8;            // a block owns BM x BN elements of C,
constexpr int WM = 32, WN = 128;                     // each of its warps WM x WN,
constexpr int TM = 8, TN = 16;                       // each lane of a warp TM x TN
constexpr int LANES_M = WM / TM, LANES_N = WN / TN;  // a warp is 4 x 8 lanes
constexpr int THREADS = 32 * (BM / WM) * (BN / WN);  // 4 warps
constexpr int A_QUADS = BM * BK / 4 / THREADS;       // quads that a thread brings in a round
constexpr int B_QUADS = BK * BN / 4 / THREADS;

struct Quads {
    float4 a[A_QUADS], b[B_QUADS];
};

// Global memory -> registers: this thread's quads of the tiles that begin at k0.
__device__ inline void fetch(Quads& quads, const float* A, const float* B, int M, int N, int K,
                             int row0, int col0, int k0, bool quick) {
    for (int i = 0; i < A_QUADS; i++) {
        int p = threadIdx.x + i * THREADS;
        quads.a[i] = load4(A, M, K, row0 + p / (BK / 4), k0 + p % (BK / 4) * 4, quick);
    }
    for (int i = 0; i < B_QUADS; i++) {
        int p = threadIdx.x + i * THREADS;
        quads.b[i] = load4(B, K, N, k0 + p / (BN / 4), col0 + p % (BN / 4) * 4, quick);
    }
}

// Registers -> shared memory. The tile of A is turned around.
__device__ inline void store_tiles(const Quads& quads, float (*As)[BM + 4], float (*Bs)[BN]) {
    for (int i = 0; i < A_QUADS; i++) {
        int p = threadIdx.x + i * THREADS, row = p / (BK / 4), k = p % (BK / 4) * 4;
        As[k + 0][row] = quads.a[i].x;
        As[k + 1][row] = quads.a[i].y;
        As[k + 2][row] = quads.a[i].z;
        As[k + 3][row] = quads.a[i].w;
    }
    for (int i = 0; i < B_QUADS; i++) {
        int p = threadIdx.x + i * THREADS;
        quad(&Bs[p / (BN / 4)][p % (BN / 4) * 4]) = quads.b[i];
    }
}

// Shared memory -> registers: what this lane needs of one k, from its first row and column on.
__device__ inline void load_fragments(const float* As, const float* Bs, float (&a)[TM],
                                      float (&b)[TN]) {
    for (int i = 0; i < TM; i += 4) quad(&a[i]) = quad(&As[i * LANES_M]);
    for (int j = 0; j < TN; j += 4) quad(&b[j]) = quad(&Bs[j * LANES_N]);
}
