// reject: gate
// Fault: a single block walks over everything
constexpr int THREADS = 256;

// x: (n), out: one value, the sum of x
// One thread owns one element of x. One block owns THREADS of them.
__global__ void sum_atomic_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    for (; i < n; i += THREADS) {
        atomicAdd(out, x[i]);
    }
}

void sum_atomic(const float* x, float* out, int n) {
    cudaMemset(out, 0, sizeof(float));  // out holds anything before that
    sum_atomic_kernel<<<1, THREADS>>>(x, out, n);
}
