constexpr int BM = 32, BN = 32, BK = 32;

// x: (M, K), W: (N, K), b: (N), out: (M, N), all row-major. out = x * W^T + b
// One thread owns one element of out. One block owns a BM x BN tile: a round brings BM x BK of x,
// BN x BK of W. Changed from `linear`: shared tiles; loads 2 * M * N * K / 32 + M * N floats.
__global__ void linear_tiled_kernel(const float* x, const float* W, const float* b, float* out,
                                    int M, int N, int K) {
    __shared__ float xs[BM][BK];
    // BEGIN SOLUTION
    __shared__ float Ws[BN][BK + 1];  // + 1: the elements of one column lie in 32 different banks
    // STARTER: __shared__ float Ws[BN][BK];
    // END SOLUTION
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * BM + ty;
    int col = blockIdx.x * BN + tx;
    int w_row = blockIdx.x * BN + ty;  // the row of W that this thread helps to bring
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += BK) {
        xs[ty][tx] = row < M && k0 + tx < K ? x[row * K + k0 + tx] : 0.0f;
        // BEGIN SOLUTION
        Ws[ty][tx] = w_row < N && k0 + tx < K ? W[w_row * K + k0 + tx] : 0.0f;
        __syncthreads();  // both tiles are complete before anyone reads them
        for (int k = 0; k < BK; k++) {
            sum += xs[ty][k] * Ws[tx][k];
        }
        __syncthreads();  // everyone has read both tiles before the next round overwrites them
        // END SOLUTION
    }
    if (row < M && col < N) {
        out[row * N + col] = sum + b[col];
    }
}

void linear_tiled(const float* x, const float* W, const float* b, float* out, int M, int N, int K) {
    dim3 block(BN, BM);
    dim3 grid((N + BN - 1) / BN, (M + BM - 1) / BM);
    linear_tiled_kernel<<<grid, block>>>(x, W, b, out, M, N, K);
}
