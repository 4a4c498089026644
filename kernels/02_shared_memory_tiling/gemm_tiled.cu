constexpr int BM = 32, BN = 32, BK = 32;  // all equal: a thread brings one element of each tile

// A: (M, K), B: (K, N), C: (M, N), all row-major. C = A * B
// One thread owns one element of C. One block owns a BM x BN tile: a round brings BM x BK of A, and
// BK x BN of B. Changed from `gemm_coalesced`: shared tiles; loads 2 * M * N * K / 32 floats.
__global__ void gemm_tiled_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float As[BM][BK];
    __shared__ float Bs[BK][BN];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * BM + ty;
    int col = blockIdx.x * BN + tx;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += BK) {
        // your code here
    }
    if (row < M && col < N) {
        C[row * N + col] = sum;
    }
}

void gemm_tiled(const float* A, const float* B, float* C, int M, int N, int K) {
    dim3 block(BN, BM);
    dim3 grid((N + BN - 1) / BN, (M + BM - 1) / BM);
    gemm_tiled_kernel<<<grid, block>>>(A, B, C, M, N, K);
}
