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
__device__ void fetch(Quads& quads, const float* A, const float* B, int M, int N, int K, int row0,
                      int col0, int k0, bool quick) {
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
__device__ void store_tiles(const Quads& quads, float (*As)[BM + 4], float (*Bs)[BN]) {
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

// Shared memory -> registers: what this lane needs of one k.
__device__ void load_fragments(const float* As, const float* Bs, float (&a)[TM], float (&b)[TN]) {
    for (int i = 0; i < TM; i += 4) quad(&a[i]) = quad(&As[i * LANES_M]);
    for (int j = 0; j < TN; j += 4) quad(&b[j]) = quad(&Bs[j * LANES_N]);
}

// A: (M, K), B: (K, N), C: (M, N), all row-major. C = A * B. One block owns a BM x BN tile of C.
// One thread owns TM x TN elements of C: patches of 4 x 4, side by side with those of its warp.
// Changed from `gemm_vectorized`: fetches tiles ahead; loads 2 * M * N * K / 128 floats.
__global__ void __launch_bounds__(THREADS, 1)
    gemm_warp_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ alignas(16) float As[2][BK][BM + 4];
    __shared__ alignas(16) float Bs[2][BK][BN];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    bool whole = row0 + BM <= M && col0 + BN <= N && K % 4 == 0 && N % 4 == 0;
    // BEGIN SOLUTION
    // STARTER: // your code here, in three steps; check after each of them:
    // STARTER: // 1. one set of tiles, As[0] and Bs[0], with two barriers a round
    // STARTER: // 2. two sets: fetch the next tiles before you use the present ones, one barrier
    // STARTER: // 3. read ahead: before the products of one k, read a and b of the next
    int row = warp / (BN / WN) * WM + lane / LANES_N * 4;
    int col = warp % (BN / WN) * WN + lane % LANES_N * 4;
    alignas(16) float a[2][TM], b[2][TN], sums[TM][TN] = {};
    Quads next;
    fetch(next, A, B, M, N, K, row0, col0, 0, whole && BK <= K);
    store_tiles(next, As[0], Bs[0]);
    store_tiles(next, As[1], Bs[1]);  // for the last round, which reads ahead, too
    __syncthreads();                  // the first tiles are complete
    load_fragments(&As[0][0][row], &Bs[0][0][col], a[0], b[0]);
    for (int k0 = 0, now = 0; k0 < K; k0 += BK) {
        int k1 = k0 + BK;  // where the next tiles begin, if there are any
        if (k1 < K) fetch(next, A, B, M, N, K, row0, col0, k1, whole && k1 + BK <= K);
#pragma unroll
        for (int k = 0; k < BK; k++) {
            if (k == BK - 1) {
                now ^= 1;
                if (k1 < K) store_tiles(next, As[now], Bs[now]);
                __syncthreads();  // the next tiles are complete, and everyone has read these
            }
            int ahead = (k + 1) % BK;
            load_fragments(&As[now][ahead][row], &Bs[now][ahead][col], a[ahead % 2], b[ahead % 2]);
            for (int i = 0; i < TM; i++) {
                for (int j = 0; j < TN; j++) sums[i][j] += a[k % 2][i] * b[k % 2][j];
            }
        }
    }
    for (int i = 0; i < TM; i++) {
        int r = row0 + row + i / 4 * 4 * LANES_M + i % 4;
        for (int j = 0; j < TN; j += 4) {
            store4(C, M, N, r, col0 + col + j * LANES_N, quad(&sums[i][j]), whole);
        }
    }
    // END SOLUTION
}

void gemm_warp(const float* A, const float* B, float* C, int M, int N, int K) {
    dim3 grid((N + BN - 1) / BN, (M + BM - 1) / BM);
    gemm_warp_kernel<<<grid, THREADS>>>(A, B, C, M, N, K);
}
