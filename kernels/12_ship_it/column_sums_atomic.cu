constexpr int THREADS = 256;

// x: (rows, channels), out: (channels). out[i] = the sum of column i
// One thread owns one element of x. One block owns 256 of them in a row.
__global__ void column_sums_atomic_kernel(const float* x, float* out, int rows, int channels) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < rows * channels) atomicAdd(&out[i % channels], x[i]);
}

void column_sums_atomic(const float* x, float* out, int rows, int channels) {
    cudaMemset(out, 0, channels * sizeof(float));
    int blocks = (rows * channels + THREADS - 1) / THREADS;
    column_sums_atomic_kernel<<<blocks, THREADS>>>(x, out, rows, channels);
}
