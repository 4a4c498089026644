// A: (M, K), B: (K, N), C: (M, N), all row-major. C = A * B. One block owns 32 x 32 elements of C.
// One thread owns one. Changed from `gemm_serial`: a grid; loads 33 * M * N * K / 32 sectors.
__global__ void gemm_naive_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;  // x counts rows. Keep an eye on this line
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    // BEGIN SOLUTION
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; k++) {
            sum += A[row * K + k] * B[k * N + col];
        }
        C[row * N + col] = sum;
    }
    // END SOLUTION
}

void gemm_naive(const float* A, const float* B, float* C, int M, int N, int K) {
    dim3 block(32, 32);
    dim3 grid((M + 31) / 32, (N + 31) / 32);  // x counts rows, y counts columns
    gemm_naive_kernel<<<grid, block>>>(A, B, C, M, N, K);
}
