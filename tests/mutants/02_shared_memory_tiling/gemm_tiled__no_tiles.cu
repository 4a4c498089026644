// reject: gate
// Fault: right values, but every thread loads its own row and column from global memory
// A: (M, K), B: (K, N), C: (M, N), all row-major. C = A * B
// One thread owns one element of C. One block owns a patch of 32 x 32 elements of C.
// The 32 threads of a warp own 32 neighbours in one row of C.
__global__ void gemm_tiled_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;  // x counts columns
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; k++) {
            sum += A[row * K + k] * B[k * N + col];
        }
        C[row * N + col] = sum;
    }
}

void gemm_tiled(const float* A, const float* B, float* C, int M, int N, int K) {
    dim3 block(32, 32);
    dim3 grid((N + 31) / 32, (M + 31) / 32);
    gemm_tiled_kernel<<<grid, block>>>(A, B, C, M, N, K);
}
