// linear_int8: passed
// a thread owns an element: rows of x and W lie in shared memory, 128 bytes of each at a time
constexpr int BM = 8, BN = 16, THREADS = BM * BN, STEP = 128;
constexpr int WORDS = STEP / 4, STRIDE = WORDS + 4;

// The quads of `count` rows from row0 on, at k; zeros beyond.
__device__ void bring(int (*tile)[STRIDE], int count, const signed char* matrix, int row0, int rows,
                      int k, int K) {
    for (int i = threadIdx.x; i < count * WORDS / 4; i += THREADS) {
        int row = i / (WORDS / 4), at = i % (WORDS / 4) * 4;
        const signed char* from = matrix + size_t(row0 + row) * K + k + 4 * at;
        int4 four = {};
        if (row0 + row < rows && K % 16 == 0) {
            if (k + 4 * at < K) four = *reinterpret_cast<const int4*>(from);
        } else if (row0 + row < rows) {
            signed char bytes[16];
            for (int j = 0; j < 16; j++) bytes[j] = k + 4 * at + j < K ? from[j] : 0;
            four = *reinterpret_cast<int4*>(bytes);
        }
        *reinterpret_cast<int4*>(&tile[row][at]) = four;
    }
}

__global__ void linear_int8_kernel(const signed char* x, const signed char* W,
                                   const float* x_scale, const float* W_scale, float* out, int M,
                                   int N, int K) {
    __shared__ alignas(16) int xs[BM][STRIDE], Ws[BN][STRIDE];
    int row = threadIdx.x / BN, col = threadIdx.x % BN;
    int m = blockIdx.y * BM + row, n = blockIdx.x * BN + col, sum = 0;
    for (int k = 0; k < K; k += STEP) {
        bring(xs, BM, x, blockIdx.y * BM, M, k, K);
        bring(Ws, BN, W, blockIdx.x * BN, N, k, K);
        __syncthreads();
        for (int i = 0; i < WORDS; i++) sum = __dp4a(xs[row][i], Ws[col][i], sum);
        __syncthreads();
    }
    if (m < M && n < N) out[size_t(m) * N + n] = sum * x_scale[m] * W_scale[n];
}

void linear_int8(const signed char* x, const signed char* W, const float* x_scale,
                 const float* W_scale, float* out, int M, int N, int K) {
    dim3 grid((N + BN - 1) / BN, (M + BM - 1) / BM);
    linear_int8_kernel<<<grid, THREADS>>>(x, W, x_scale, W_scale, out, M, N, K);
}
