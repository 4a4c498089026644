// A: (M, K), B: (K, N), C: (M, N), all row-major. C = A * B
// One thread owns one element of C, a warp 32 neighbours in one row. One block owns 32 x 32.
// Changed from `gemm_naive`: a warp runs along a row; loads 5 * M * N * K / 32 sectors.
__global__ void gemm_coalesced_kernel(const float* A, const float* B, float* C, int M, int N,
                                      int K) {
    // BEGIN SOLUTION
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;  // x counts columns
    // STARTER: int row = M;  // your code here
    // STARTER: int col = N;  // your code here
    // END SOLUTION
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; k++) {
            sum += A[row * K + k] * B[k * N + col];
        }
        C[row * N + col] = sum;
    }
}

void gemm_coalesced(const float* A, const float* B, float* C, int M, int N, int K) {
    dim3 block(32, 32);
    // BEGIN SOLUTION
    dim3 grid((N + 31) / 32, (M + 31) / 32);
    // STARTER: dim3 grid(1, 1);  // your code here
    // END SOLUTION
    gemm_coalesced_kernel<<<grid, block>>>(A, B, C, M, N, K);
}
