constexpr int BM = 128, BN = 128, BK = 8;      // the tiles of the block
constexpr int TM = 8, TN = 8;                  // rows and columns of C for each thread
constexpr int ROWS = BM / TM, COLS = BN / TN;  // the threads stand in 16 rows and 16 columns
constexpr int THREADS = ROWS * COLS;

// A: (M, K), B: (K, N), C: (M, N), all row-major. C = A * B. One block owns a BM x BN tile of C.
// One thread owns TM x TN elements of C: from (row, col) of the tile on, every 16th row and column.
// Changed from `gemm_1d`: TN columns a thread, so larger tiles; loads 2 * M * N * K / 128 floats.
__global__ void gemm_2d_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float As[BM][BK];
    __shared__ float Bs[BK][BN];
    int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    int row = threadIdx.x / COLS, col = threadIdx.x % COLS;
    float sums[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        for (int p = threadIdx.x; p < BM * BK; p += THREADS) {  // 1024 elements, 256 threads
            int r = p / BK, k = p % BK;
            As[r][k] = row0 + r < M && k0 + k < K ? A[(row0 + r) * K + k0 + k] : 0.0f;
        }
        for (int p = threadIdx.x; p < BK * BN; p += THREADS) {
            int k = p / BN, c = p % BN;
            Bs[k][c] = k0 + k < K && col0 + c < N ? B[(k0 + k) * N + col0 + c] : 0.0f;
        }
        __syncthreads();  // both tiles are complete before anyone reads them
        for (int k = 0; k < BK; k++) {
            // your code here
        }
        __syncthreads();  // everyone has read both tiles before the next round overwrites them
    }
    // your code here
}

void gemm_2d(const float* A, const float* B, float* C, int M, int N, int K) {
    dim3 grid((N + BN - 1) / BN, (M + BM - 1) / BM);
    gemm_2d_kernel<<<grid, THREADS>>>(A, B, C, M, N, K);
}
