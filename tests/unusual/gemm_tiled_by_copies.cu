// gemm_tiled: passed
// Copies to shared memory run ahead of the products, in two sets of tiles.
#include <cuda_pipeline.h>
constexpr int T = 32;
__global__ void gemm_tiled_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float As[2][T][T], Bs[2][T][T];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * T + ty, col = blockIdx.x * T + tx;
    auto bring = [&](int slot, int k0) {
        if (row < M && k0 + tx < K) __pipeline_memcpy_async(&As[slot][ty][tx], &A[row * K + k0 + tx], 4);
        else As[slot][ty][tx] = 0.0f;
        if (k0 + ty < K && col < N) __pipeline_memcpy_async(&Bs[slot][ty][tx], &B[(k0 + ty) * N + col], 4);
        else Bs[slot][ty][tx] = 0.0f;
        __pipeline_commit();
    };
    float sum = 0.0f;
    bring(0, 0);
    for (int k0 = 0, slot = 0; k0 < K; k0 += T, slot ^= 1) {
        if (k0 + T < K) bring(slot ^ 1, k0 + T);
        __pipeline_wait_prior(k0 + T < K ? 1 : 0);
        __syncthreads();
        for (int k = 0; k < T; k++) sum += As[slot][ty][k] * Bs[slot][k][tx];
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = sum;
}
void gemm_tiled(const float* A, const float* B, float* C, int M, int N, int K) {
    gemm_tiled_kernel<<<dim3((N + T - 1) / T, (M + T - 1) / T), dim3(T, T)>>>(A, B, C, M, N, K);
}
