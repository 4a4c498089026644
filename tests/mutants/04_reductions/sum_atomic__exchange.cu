// reject: wrong values
// Fault: replaces the sum instead of adding to it
constexpr int THREADS = 256;

// x: (n), out: one value, the sum of x
// One thread owns one element of x. One block owns THREADS of them.
__global__ void sum_atomic_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < n) {
        atomicExch(out, x[i]);
    }
}

void sum_atomic(const float* x, float* out, int n) {
    cudaMemset(out, 0, sizeof(float));  // out holds anything before that
    sum_atomic_kernel<<<(n + THREADS - 1) / THREADS, THREADS>>>(x, out, n);
}
