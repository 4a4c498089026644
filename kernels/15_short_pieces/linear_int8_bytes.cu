constexpr int WARPS = 4, THREADS = 32 * WARPS;

// The sum over all lanes. All 32 must call it.
__device__ int warp_sum(int value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

// x: (M, K), W: (N, K), bytes with a sign; x_scale: (M), W_scale: (N), out: (M, N)
// out[m][n] = (x[m][0] * W[n][0] + … + x[m][K - 1] * W[n][K - 1]) * x_scale[m] * W_scale[n]
// One thread owns every 32nd byte of a row of x and of a row of W. One warp owns one element of
// out.
__global__ void linear_int8_bytes_kernel(const signed char* x, const signed char* W,
                                         const float* x_scale, const float* W_scale, float* out,
                                         int N, int K) {
    int n = blockIdx.x * WARPS + threadIdx.x / 32, m = blockIdx.y, lane = threadIdx.x % 32;
    if (n >= N) return;  // all lanes of a warp, or none
    int sum = 0;
    for (int k = lane; k < K; k += 32) sum += x[m * K + k] * W[size_t(n) * K + k];
    sum = warp_sum(sum);
    if (lane == 0) out[m * N + n] = sum * x_scale[m] * W_scale[n];
}

void linear_int8_bytes(const signed char* x, const signed char* W, const float* x_scale,
                       const float* W_scale, float* out, int M, int N, int K) {
    dim3 grid((N + WARPS - 1) / WARPS, M);
    linear_int8_bytes_kernel<<<grid, THREADS>>>(x, W, x_scale, W_scale, out, N, K);
}
