constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;

// The sum of the values of all 32 lanes. Every lane of the warp must call it, and every lane gets
// the sum.
__device__ float warp_sum(float value) {
    // BEGIN SOLUTION
    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_xor_sync(0xffffffff, value, step);
    }
    // END SOLUTION
    return value;
}

// x: (n), out: their sum. Changed from `sum_sequential`: shuffles; loads n / 256 shared requests.
// One thread owns one element of x. One block owns THREADS of them, and adds one sum to out.
__global__ void sum_warp_kernel(const float* x, float* out, int n) {
    __shared__ float sums[WARPS];  // one of each warp
    int t = threadIdx.x;
    int warp = t / 32, lane = t % 32;
    int i = blockIdx.x * THREADS + t;
    float sum = warp_sum(i < n ? x[i] : 0.0f);
    // BEGIN SOLUTION
    if (lane == 0) {
        sums[warp] = sum;
    }
    __syncthreads();  // the sum of every warp is there before the first warp reads them
    if (warp == 0) {
        sum = warp_sum(lane < WARPS ? sums[lane] : 0.0f);
    }
    // END SOLUTION
    if (t == 0) {
        atomicAdd(out, sum);
    }
}

void sum_warp(const float* x, float* out, int n) {
    cudaMemset(out, 0, sizeof(float));
    sum_warp_kernel<<<(n + THREADS - 1) / THREADS, THREADS>>>(x, out, n);
}
