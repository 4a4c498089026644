// reject: wrong values
// Fault: adds whole numbers
constexpr int THREADS = 256;

// x: (n), out: one value, the sum of x
// One thread owns one element of x. One block owns THREADS of them.
__global__ void sum_atomic_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < n) {
        atomicAdd(out, (int)x[i]);
    }
}

void sum_atomic(const float* x, float* out, int n) {
    cudaMemset(out, 0, sizeof(float));  // out holds anything before that
    sum_atomic_kernel<<<(n + THREADS - 1) / THREADS, THREADS>>>(x, out, n);
}
