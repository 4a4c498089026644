// reject: gate
// Fault: right values, but one thread computes everything
// A: (M, K), B: (K, N), C: (M, N), all row-major. C = A * B
// One single thread owns the whole of C.
__global__ void gemm_naive_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    for (int row = 0; row < M; row++) {
        for (int col = 0; col < N; col++) {
            float sum = 0.0f;
            for (int k = 0; k < K; k++) {
                sum += A[row * K + k] * B[k * N + col];
            }
            C[row * N + col] = sum;
        }
    }
}

void gemm_naive(const float* A, const float* B, float* C, int M, int N, int K) {
    gemm_naive_kernel<<<1, 1>>>(A, B, C, M, N, K);
}
