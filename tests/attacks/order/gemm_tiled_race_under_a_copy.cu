// gemm_tiled_race: race/launch error
// M, N and K go to the device from pinned memory that the next call overwrites without waiting
// says: race between the host and a copy from its memory
constexpr int BM = 32, BN = 32, BK = 32;

// A: (M, K), B: (K, N), C: (M, N), all row-major. C = A * B
// One thread owns one element of C. One block owns a BM x BN tile of C.
__global__ void gemm_tiled_race_kernel(const float* A, const float* B, float* C,
                                       const int* sizes) {
    int M = sizes[0], N = sizes[1], K = sizes[2];
    __shared__ float As[BM][BK];
    __shared__ float Bs[BK][BN];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * BM + ty;
    int col = blockIdx.x * BN + tx;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += BK) {
        As[ty][tx] = row < M && k0 + tx < K ? A[row * K + k0 + tx] : 0.0f;
        Bs[ty][tx] = k0 + ty < K && col < N ? B[(k0 + ty) * N + col] : 0.0f;
        __syncthreads();  // both tiles are complete before anyone reads them
        for (int k = 0; k < BK; k++) {
            sum += As[ty][k] * Bs[k][tx];
        }
        __syncthreads();  // everyone has read both tiles before the next round overwrites them
    }
    if (row < M && col < N) {
        C[row * N + col] = sum;
    }
}

void gemm_tiled_race(const float* A, const float* B, float* C, int M, int N, int K) {
    dim3 block(BN, BM);
    dim3 grid((N + BN - 1) / BN, (M + BM - 1) / BM);
    static int *host = nullptr, *sizes = nullptr;
    if (!host) {
        cudaMallocHost(&host, 3 * sizeof(int));
        cudaMalloc(&sizes, 3 * sizeof(int));
    }
    host[0] = M, host[1] = N, host[2] = K;  // the copy of the call before may be under way
    cudaMemcpyAsync(sizes, host, 3 * sizeof(int), cudaMemcpyHostToDevice, 0);
    gemm_tiled_race_kernel<<<grid, block>>>(A, B, C, sizes);
}
