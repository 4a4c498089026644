// C = A B with shared-memory tiles, for sizes that no tile divides; checked on the host.
#include <cmath>
#include <vector>

#include "check.cuh"

// A is M x K, B is K x N, C is M x N, all row-major. A block owns a TILE x TILE part of C,
// a thread one element of it.
template <int TILE>
__global__ void tiled_gemm(const float* __restrict__ A, const float* __restrict__ B, float* C,
                           int M, int N, int K) {
    __shared__ float As[TILE][TILE], Bs[TILE][TILE];
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        const int a_col = k0 + threadIdx.x, b_row = k0 + threadIdx.y;
        As[threadIdx.y][threadIdx.x] = row < M && a_col < K ? A[row * K + a_col] : 0.0f;
        Bs[threadIdx.y][threadIdx.x] = b_row < K && col < N ? B[b_row * N + col] : 0.0f;
        __syncthreads();  // the tiles are whole before anyone reads them
#pragma unroll
        for (int k = 0; k < TILE; ++k) sum += As[threadIdx.y][k] * Bs[k][threadIdx.x];
        __syncthreads();  // everyone has read them before they are overwritten
    }
    if (row < M && col < N) C[row * N + col] = sum;
}

template <int TILE>
int run(int M, int N, int K) {
    std::vector<float> A(M * K), B(K * N), C(M * N, NAN);
    for (int i = 0; i < M * K; ++i) A[i] = (i * 7 % 13) - 6;
    for (int i = 0; i < K * N; ++i) B[i] = (i * 5 % 11) - 5;

    float *A_device, *B_device, *C_device;
    CHECK(cudaMalloc(&A_device, A.size() * sizeof(float)));
    CHECK(cudaMalloc(&B_device, B.size() * sizeof(float)));
    CHECK(cudaMalloc(&C_device, C.size() * sizeof(float)));
    CHECK(cudaMemcpy(A_device, A.data(), A.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(B_device, B.data(), B.size() * sizeof(float), cudaMemcpyHostToDevice));

    dim3 block(TILE, TILE), grid((N + TILE - 1) / TILE, (M + TILE - 1) / TILE);
    tiled_gemm<TILE><<<grid, block>>>(A_device, B_device, C_device, M, N, K);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(C.data(), C_device, C.size() * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(A_device));
    CHECK(cudaFree(B_device));
    CHECK(cudaFree(C_device));

    int wrong = 0;  // the values are small integers, so that every sum is exact
    for (int row = 0; row < M; ++row)
        for (int col = 0; col < N; ++col) {
            float sum = 0.0f;
            for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
            wrong += !(C[row * N + col] == sum);
        }
    std::printf("tiled_gemm<%d>: %d x %d x %d, %d wrong\n", TILE, M, N, K, wrong);
    return wrong;
}

int main() {
    const int wrong = run<16>(37, 50, 29) + run<8>(1, 9, 100) + run<32>(64, 32, 96);
    return wrong ? 1 : 0;
}
