// reject: race
// Wrong: the barrier is gone, and the steps are no longer apart

// fault: barrier inside a branch, line 15 or 17
constexpr int THREADS = 256;

// x: (rows, cols), out: (rows, cols). Each row minus its mean.
// One thread owns every 256th element of a row. One block owns a row.
__global__ void center_rows_kernel(const float* x, float* out, int cols) {
    __shared__ float sums[THREADS];
    int row = blockIdx.x, t = threadIdx.x;
    float sum = 0.0f;
    for (int c = t; c < cols; c += THREADS) sum += x[row * cols + c];
    sums[t] = sum;
    __syncthreads();  // all sums are there before the first step reads them
    for (int step = THREADS / 2; step > 0; step /= 2) {
        if (t < step) sums[t] += sums[t + step];
    }
    if (t == 0) sums[0] /= cols;
    __syncthreads();  // the mean is there before anyone subtracts it
    for (int c = t; c < cols; c += THREADS) out[row * cols + c] = x[row * cols + c] - sums[0];
}

void center_rows(const float* x, float* out, int rows, int cols) {
    center_rows_kernel<<<rows, THREADS>>>(x, out, cols);
}
