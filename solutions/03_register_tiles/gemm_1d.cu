constexpr int BM = 64, BN = 64, BK = 8;  // the tiles of the block
constexpr int TM = 8;                    // elements of C for each thread
constexpr int THREADS = BM / TM * BN;    // 512: one for each element of a tile of A or B

// A: (M, K), B: (K, N), C: (M, N), all row-major. C = A * B. One block owns a BM x BN tile of C.
// One thread owns TM in a column. Changed from `gemm_tiled`: 64 x 64; loads M * N * K / 32 floats.
__global__ void gemm_1d_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float As[BM][BK];
    __shared__ float Bs[BK][BN];
    int t = threadIdx.x;
    int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;  // where the tile of C begins
    int a_row = t / BK, a_k = t % BK;                    // what this thread brings
    int b_k = t / BN, b_col = t % BN;
    int row = t / BN * TM, col = t % BN;  // the first element that it owns, within the tile
    float sums[TM] = {};                  // TM zeros, in registers
    for (int k0 = 0; k0 < K; k0 += BK) {
        bool a_inside = row0 + a_row < M && k0 + a_k < K;
        bool b_inside = k0 + b_k < K && col0 + b_col < N;
        As[a_row][a_k] = a_inside ? A[(row0 + a_row) * K + k0 + a_k] : 0.0f;
        Bs[b_k][b_col] = b_inside ? B[(k0 + b_k) * N + col0 + b_col] : 0.0f;
        __syncthreads();  // both tiles are complete before anyone reads them
        // BEGIN SOLUTION
        for (int k = 0; k < BK; k++) {
            float b = Bs[k][col];  // read once, used TM times
            for (int i = 0; i < TM; i++) {
                sums[i] += As[row + i][k] * b;
            }
        }
        // END SOLUTION
        __syncthreads();  // everyone has read both tiles before the next round overwrites them
    }
    // BEGIN SOLUTION
    for (int i = 0; i < TM; i++) {
        if (row0 + row + i < M && col0 + col < N) {
            C[(row0 + row + i) * N + col0 + col] = sums[i];
        }
    }
    // END SOLUTION
}

void gemm_1d(const float* A, const float* B, float* C, int M, int N, int K) {
    dim3 grid((N + BN - 1) / BN, (M + BM - 1) / BM);
    gemm_1d_kernel<<<grid, THREADS>>>(A, B, C, M, N, K);
}
