// reject: gate
// Fault: right values, but neighbouring threads walk down a column
// A: (M, K), B: (K, N), C: (M, N), all row-major. C = A * B
// One thread owns one element of C. One block owns a patch of 32 x 32 elements of C.
__global__ void gemm_coalesced_kernel(const float* A, const float* B, float* C, int M, int N,
                                      int K) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;  // x counts rows. Keep an eye on this line
    int col = blockIdx.y * blockDim.y + threadIdx.y;
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
    dim3 grid((M + 31) / 32, (N + 31) / 32);  // x counts rows, y counts columns
    gemm_coalesced_kernel<<<grid, block>>>(A, B, C, M, N, K);
}
