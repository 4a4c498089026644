#include "warp_tile.cuh"

// A: (M, K), B: (K, N), C: (M, N), all row-major. C = A * B. One block owns a BM x BN tile of C.
// One thread owns TM x TN elements of C: patches of 4 x 4, side by side with those of its warp.
// Changed from `gemm_vectorized`: 8 x 16 a thread; loads M * N * K * 6 / 4096 shared requests.
__global__ void __launch_bounds__(THREADS, 1)
    gemm_warp_tile_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ alignas(16) float As[BK][BM + 4];
    __shared__ alignas(16) float Bs[BK][BN];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    bool whole = row0 + BM <= M && col0 + BN <= N && K % 4 == 0 && N % 4 == 0;
    // BEGIN SOLUTION
    int row = warp / (BN / WN) * WM + lane / LANES_N * 4;
    int col = warp % (BN / WN) * WN + lane % LANES_N * 4;
    // STARTER: // your code here: where the first patch of this lane begins, within the tile
    // STARTER: int row = 0, col = 0;
    // END SOLUTION
    alignas(16) float a[TM], b[TN], sums[TM][TN] = {};
    Quads quads;
    for (int k0 = 0; k0 < K; k0 += BK) {
        fetch(quads, A, B, M, N, K, row0, col0, k0, whole && k0 + BK <= K);
        store_tiles(quads, As, Bs);
        __syncthreads();  // both tiles are complete before anyone reads them
        for (int k = 0; k < BK; k++) {
            // BEGIN SOLUTION
            load_fragments(&As[k][row], &Bs[k][col], a, b);
            // END SOLUTION
            for (int i = 0; i < TM; i++) {
                for (int j = 0; j < TN; j++) sums[i][j] += a[i] * b[j];
            }
        }
        __syncthreads();  // everyone has read both tiles before the next round overwrites them
    }
    // BEGIN SOLUTION
    for (int i = 0; i < TM; i++) {
        int r = row0 + row + i / 4 * 4 * LANES_M + i % 4;
        for (int j = 0; j < TN; j += 4) {
            store4(C, M, N, r, col0 + col + j * LANES_N, quad(&sums[i][j]), whole);
        }
    }
    // STARTER: // your code here: store the patches, with store4
    // END SOLUTION
}

void gemm_warp_tile(const float* A, const float* B, float* C, int M, int N, int K) {
    dim3 grid((N + BN - 1) / BN, (M + BM - 1) / BM);
    gemm_warp_tile_kernel<<<grid, THREADS>>>(A, B, C, M, N, K);
}
