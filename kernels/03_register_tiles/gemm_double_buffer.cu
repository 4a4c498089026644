#include "warp_tile.cuh"

// A: (M, K), B: (K, N), C: (M, N), all row-major. C = A * B. One block owns a BM x BN tile of C.
// One thread owns TM x TN elements of C: patches of 4 x 4, side by side with those of its warp.
// Changed from `gemm_warp_tile`: two sets of tiles, one barrier; loads 2 * M * N * K / 128 floats.
__global__ void __launch_bounds__(THREADS, 1)
    gemm_double_buffer_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ alignas(16) float As[2][BK][BM + 4];
    __shared__ alignas(16) float Bs[2][BK][BN];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    bool whole = row0 + BM <= M && col0 + BN <= N && K % 4 == 0 && N % 4 == 0;
    int row = warp / (BN / WN) * WM + lane / LANES_N * 4;
    int col = warp % (BN / WN) * WN + lane % LANES_N * 4;
    alignas(16) float a[TM], b[TN], sums[TM][TN] = {};
    Quads next;
    // your code here: tiles 0 into set 0
    for (int k0 = 0, now = 0; k0 < K; k0 += BK) {
        int k1 = k0 + BK;  // where the next tiles begin, if there are any
        // your code here: fetch the next tiles
        for (int k = 0; k < BK; k++) {
            load_fragments(&As[now][k][row], &Bs[now][k][col], a, b);
            for (int i = 0; i < TM; i++) {
                for (int j = 0; j < TN; j++) sums[i][j] += a[i] * b[j];
            }
        }
        // your code here: put them into the other set, which is then the current one
    }
    for (int i = 0; i < TM; i++) {
        int r = row0 + row + i / 4 * 4 * LANES_M + i % 4;
        for (int j = 0; j < TN; j += 4) {
            store4(C, M, N, r, col0 + col + j * LANES_N, quad(&sums[i][j]), whole);
        }
    }
}

void gemm_double_buffer(const float* A, const float* B, float* C, int M, int N, int K) {
    dim3 grid((N + BN - 1) / BN, (M + BM - 1) / BM);
    gemm_double_buffer_kernel<<<grid, THREADS>>>(A, B, C, M, N, K);
}
