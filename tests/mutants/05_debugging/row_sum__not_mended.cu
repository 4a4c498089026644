// reject: race
// Wrong: the fault is named, and still there

// fault: missing barrier, line 14 or 15 or 16
constexpr int THREADS = 256;

// x: (rows, cols), out: (rows). The sum of each row.
// One thread owns every 256th element of a row. One block owns a row.
__global__ void row_sum_kernel(const float* x, float* out, int cols) {
    __shared__ float sums[THREADS];
    int row = blockIdx.x, t = threadIdx.x;
    float sum = 0.0f;
    for (int c = t; c < cols; c += THREADS) sum += x[row * cols + c];
    sums[t] = sum;
    __syncthreads();  // all sums are there before the first step reads them
    for (int step = THREADS / 2; step > 0; step /= 2) {
        if (t < step) sums[t] += sums[t + step];
    }
    if (t == 0) out[row] = sums[0];
}

void row_sum(const float* x, float* out, int rows, int cols) {
    row_sum_kernel<<<rows, THREADS>>>(x, out, cols);
}
