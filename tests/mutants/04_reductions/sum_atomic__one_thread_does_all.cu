// reject: gate
// Fault: one thread adds everything
constexpr int THREADS = 256;

// x: (n), out: one value, the sum of x
// One thread owns one element of x. One block owns THREADS of them.
__global__ void sum_atomic_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i == 0) {
        float sum = 0.0f;
        for (int j = 0; j < n; j++) sum += x[j];
        atomicAdd(out, sum);
    }
}

void sum_atomic(const float* x, float* out, int n) {
    cudaMemset(out, 0, sizeof(float));  // out holds anything before that
    sum_atomic_kernel<<<(n + THREADS - 1) / THREADS, THREADS>>>(x, out, n);
}
