constexpr int THREADS = 256;  // a power of two

// x: (n), out: their sum. Changed from `sum_tree`: neighbours add; 25 * n / 256 shared requests.
// One thread owns one element of x. One block owns THREADS of them, and adds one sum to out.
__global__ void sum_sequential_kernel(const float* x, float* out, int n) {
    __shared__ float sums[THREADS];
    int t = threadIdx.x;
    int i = blockIdx.x * THREADS + t;
    sums[t] = i < n ? x[i] : 0.0f;
    __syncthreads();  // all elements are there before anyone adds two of them
    // your code here
    if (t == 0) {
        atomicAdd(out, sums[0]);
    }
}

void sum_sequential(const float* x, float* out, int n) {
    cudaMemset(out, 0, sizeof(float));
    sum_sequential_kernel<<<(n + THREADS - 1) / THREADS, THREADS>>>(x, out, n);
}
