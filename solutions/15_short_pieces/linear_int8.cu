constexpr int WARPS = 4, THREADS = 32 * WARPS;
constexpr int BM = 8, BN = 4;  // elements of out that a warp owns: one for each lane at the end
constexpr int STEP = 16 * 32;  // of K that a warp multiplies at a time

// The sum over all lanes. All 32 must call it.
__device__ int warp_sum(int value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

// 16 neighbours of a row of K bytes, from k on, four in each int; 0 beyond its end.
// WHOLE: 16 divides K. A test of that here, while the kernel runs, would part all loads from one
// another, and each would wait until the one before is used.
template <bool WHOLE>
__device__ int4 load16(const signed char* row, int k, int K) {
    union {
        signed char bytes[16];
        int4 ints;
    } some;
    if (WHOLE) some.ints = *reinterpret_cast<const int4*>(row + k);
    for (int i = 0; i < 16 && !WHOLE; i++) some.bytes[i] = k + i < K ? row[k + i] : 0;
    return some.ints;
}

// sum + the 16 products of bytes at the same places of a and b
__device__ int dot16(int4 a, int4 b, int sum) {
    // BEGIN SOLUTION
    sum = __dp4a(a.x, b.x, sum);
    sum = __dp4a(a.y, b.y, sum);
    sum = __dp4a(a.z, b.z, sum);
    sum = __dp4a(a.w, b.w, sum);
    // END SOLUTION
    return sum;
}

// x: (M, K), W: (N, K), bytes with a sign; x_scale: (M), W_scale: (N), out: (M, N)
// out[m][n] = (x[m][0] * W[n][0] + … + x[m][K - 1] * W[n][K - 1]) * x_scale[m] * W_scale[n]
// One thread owns of each row every 32nd stretch of 16 bytes. One warp owns 8 x 4 elements of out.
// Changed from `linear_int8_bytes`: loads of 16 bytes, each multiplied by 4 or 8 others, those of W
// one step ahead; loads 3 * M * N * K / 4096 + M * N / 16 requests.
template <bool WHOLE>
__global__ void __launch_bounds__(THREADS)
    linear_int8_kernel(const signed char* x, const signed char* W, const float* x_scale,
                       const float* W_scale, float* out, int M, int N, int K) {
    int lane = threadIdx.x % 32;
    int m0 = blockIdx.y * BM, n0 = (blockIdx.x * WARPS + threadIdx.x / 32) * BN;
    int sums[BM][BN] = {};
    const signed char* rows[BN];  // of W; beyond the last one, that once more
    int4 next[BN] = {};
#pragma unroll
    for (int j = 0; j < BN; j++) {
        rows[j] = W + size_t(min(n0 + j, N - 1)) * K;
        if (16 * lane < K) next[j] = load16<WHOLE>(rows[j], 16 * lane, K);
    }
    for (int k = 16 * lane; k < K; k += STEP) {
        int4 w[BN];
#pragma unroll
        for (int j = 0; j < BN; j++) {
            w[j] = next[j];
            if (k + STEP < K) next[j] = load16<WHOLE>(rows[j], k + STEP, K);  // while w is used
        }
#pragma unroll
        for (int i = 0; i < BM; i++) {
            // BEGIN SOLUTION
            int m = min(m0 + i, M - 1);
            int4 a = load16<WHOLE>(x + size_t(m) * K, k, K);
#pragma unroll
            for (int j = 0; j < BN; j++) sums[i][j] = dot16(a, w[j], sums[i][j]);
            // END SOLUTION
        }
    }
    int mine = 0;  // of element (lane / BN, lane % BN)
#pragma unroll
    for (int i = 0; i < BM * BN; i++) {
        // BEGIN SOLUTION
        int sum = warp_sum(sums[i / BN][i % BN]);
        if (lane == i) mine = sum;
        // END SOLUTION
    }
    int m = m0 + lane / BN, n = n0 + lane % BN;
    // BEGIN SOLUTION
    if (m < M && n < N) out[size_t(m) * N + n] = mine * x_scale[m] * W_scale[n];
    // END SOLUTION
}

void linear_int8(const signed char* x, const signed char* W, const float* x_scale,
                 const float* W_scale, float* out, int M, int N, int K) {
    dim3 grid((N + BN * WARPS - 1) / (BN * WARPS), (M + BM - 1) / BM);
    auto kernel = K % 16 == 0 ? linear_int8_kernel<true> : linear_int8_kernel<false>;
    kernel<<<grid, THREADS>>>(x, W, x_scale, W_scale, out, M, N, K);
}
