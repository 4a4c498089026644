#include "quads.cuh"

constexpr int BM = 128, BN = 128, BK = 8;
constexpr int TM = 8, TN = 8;
constexpr int THREADS = 256;

// A: (M, K), B: (K, N), C: (M, N), all row-major. C = A * B
// One thread owns TM x TN elements of C: four patches of 4 x 4, 64 rows or columns apart. One block
// owns a BM x BN tile. Changed from `gemm_2d`: quads; loads 2 * M * N * K / 128 / 128 requests.
__global__ void __launch_bounds__(THREADS)
    gemm_vectorized_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ alignas(16) float Bs[BK][BN];
    // BEGIN SOLUTION
    __shared__ alignas(16) float As[BK][BM + 4];  // columns of A lie in rows; + 4: see the banks
    // STARTER: __shared__ alignas(16) float As[BK][BM];  // columns of A lie in rows
    // END SOLUTION
    int t = threadIdx.x;
    int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    bool whole = row0 + BM <= M && col0 + BN <= N && K % 4 == 0 && N % 4 == 0;
    int a_row = t / 2, a_k = t % 2 * 4;      // the quad of A that this thread brings
    int b_k = t / 32, b_col = t % 32 * 4;    // and its quad of B
    int row = t / 16 * 4, col = t % 16 * 4;  // its first patch
    alignas(16) float sums[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        bool quick = whole && k0 + BK <= K;
        // BEGIN SOLUTION
        float4 of_A = load4(A, M, K, row0 + a_row, k0 + a_k, quick);
        As[a_k + 0][a_row] = of_A.x;
        As[a_k + 1][a_row] = of_A.y;
        As[a_k + 2][a_row] = of_A.z;
        As[a_k + 3][a_row] = of_A.w;
        quad(&Bs[b_k][b_col]) = load4(B, K, N, k0 + b_k, col0 + b_col, quick);
        // END SOLUTION
        __syncthreads();  // both tiles are complete before anyone reads them
#pragma unroll
        for (int k = 0; k < BK; k++) {
            alignas(16) float a[TM], b[TN];
            // BEGIN SOLUTION
            for (int i = 0; i < TM; i += 4) quad(&a[i]) = quad(&As[k][row + i * 16]);
            for (int j = 0; j < TN; j += 4) quad(&b[j]) = quad(&Bs[k][col + j * 16]);
            // END SOLUTION
            for (int i = 0; i < TM; i++) {
                for (int j = 0; j < TN; j++) sums[i][j] += a[i] * b[j];
            }
        }
        __syncthreads();  // everyone has read both tiles before the next round overwrites them
    }
    // BEGIN SOLUTION
    for (int i = 0; i < TM; i++) {
        int r = row0 + row + i / 4 * 64 + i % 4;
        for (int j = 0; j < TN; j += 4) {
            store4(C, M, N, r, col0 + col + j * 16, quad(&sums[i][j]), whole);
        }
    }
    // END SOLUTION
}

void gemm_vectorized(const float* A, const float* B, float* C, int M, int N, int K) {
    dim3 grid((N + BN - 1) / BN, (M + BM - 1) / BM);
    gemm_vectorized_kernel<<<grid, THREADS>>>(A, B, C, M, N, K);
}
