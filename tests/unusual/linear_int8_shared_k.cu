// linear_int8: passed
// four warps share 8 x 8 elements, each a quarter of K, from its end to its beginning; a block adds
// their sums in shared memory, and walks over tiles
constexpr int BM = 8, BN = 8, WARPS = 4, THREADS = 32 * WARPS;

__device__ int4 sixteen(const signed char* row, int k, int K) {
    if (K % 16 == 0) return *reinterpret_cast<const int4*>(row + k);
    int words[4] = {};
    for (int i = 0; i < 16 && k + i < K; i++) {
        words[i / 4] |= int(static_cast<unsigned char>(row[k + i])) << (i % 4 * 8);
    }
    return {words[0], words[1], words[2], words[3]};
}

__global__ void linear_int8_kernel(const signed char* x, const signed char* W,
                                   const float* x_scale, const float* W_scale, float* out, int M,
                                   int N, int K) {
    __shared__ int parts[WARPS][BM * BN];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int across = (N + BN - 1) / BN, tiles = across * ((M + BM - 1) / BM);
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int m0 = tile / across * BM, n0 = tile % across * BN;
        int sums[BM][BN] = {};
        for (int k = (K + 511) / 512 * 512 - 512 * (warp + 1) + 16 * lane; k >= 0;
             k -= 512 * WARPS) {
            if (k >= K) continue;
            int4 a[BM];
            for (int i = 0; i < BM; i++) a[i] = sixteen(x + size_t(min(m0 + i, M - 1)) * K, k, K);
            for (int j = 0; j < BN; j++) {
                int4 b = sixteen(W + size_t(min(n0 + j, N - 1)) * K, k, K);
                for (int i = 0; i < BM; i++) {
                    int sum = __dp4a(a[i].x, b.x, __dp4a(a[i].y, b.y, sums[i][j]));
                    sums[i][j] = __dp4a(a[i].z, b.z, __dp4a(a[i].w, b.w, sum));
                }
            }
        }
        for (int i = 0; i < BM * BN; i++) {
            int sum = __reduce_add_sync(0xffffffffu, sums[i / BN][i % BN]);
            if (lane == 0) parts[warp][i] = sum;
        }
        __syncthreads();
        if (threadIdx.x < BM * BN) {
            int sum = 0, m = m0 + threadIdx.x / BN, n = n0 + threadIdx.x % BN;
            for (int w = 0; w < WARPS; w++) sum += parts[w][threadIdx.x];
            if (m < M && n < N) out[size_t(m) * N + n] = sum * (x_scale[m] * W_scale[n]);
        }
        __syncthreads();
    }
}

void linear_int8(const signed char* x, const signed char* W, const float* x_scale,
                 const float* W_scale, float* out, int M, int N, int K) {
    int tiles = ((N + BN - 1) / BN) * ((M + BM - 1) / BM);
    linear_int8_kernel<<<min(tiles, 264), THREADS>>>(x, W, x_scale, W_scale, out, M, N, K);
}
