constexpr int THREADS = 256;  // a power of two

// x: (n), out: one value, their sum. Changed from `sum_atomic`: blocks add up; n / 256 atomics.
// One thread owns one element of x. One block owns THREADS of them, and adds one sum to out.
__global__ void sum_tree_kernel(const float* x, float* out, int n) {
    __shared__ float sums[THREADS];
    int t = threadIdx.x;
    int i = blockIdx.x * THREADS + t;
    sums[t] = i < n ? x[i] : 0.0f;
    __syncthreads();  // all elements are there before anyone adds two of them
    // BEGIN SOLUTION
    for (int stride = 1; stride < THREADS; stride *= 2) {
        if (t % (2 * stride) == 0) {
            sums[t] += sums[t + stride];
        }
        __syncthreads();  // the sums of this step are complete before the next step reads them
    }
    // END SOLUTION
    if (t == 0) {
        atomicAdd(out, sums[0]);
    }
}

void sum_tree(const float* x, float* out, int n) {
    cudaMemset(out, 0, sizeof(float));
    sum_tree_kernel<<<(n + THREADS - 1) / THREADS, THREADS>>>(x, out, n);
}
