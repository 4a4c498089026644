// reject: race
// Wrong: the sum is read before it is complete

// fault: missing barrier, line 12 or 13 or 14 or 15
constexpr int THREADS = 256;

// x: (rows, cols), out: (rows, cols). Each element over the sum of its row's absolute values.
// One thread owns every 256th element of a row. One block owns a row.
__global__ void row_share_kernel(const float* x, float* out, int cols) {
    __shared__ float sums[THREADS];
    int row = blockIdx.x, t = threadIdx.x;
    float sum = 0.0f;
    for (int c = t; c < cols; c += THREADS) sum += fabsf(x[row * cols + c]);
    sums[t] = sum;
    for (int step = THREADS / 2; step > 0; step /= 2) {
        __syncthreads();  // what was written so far is there before this step reads it
        if (t < step) sums[t] += sums[t + step];
    }
    for (int c = t; c < cols; c += THREADS) out[row * cols + c] = x[row * cols + c] / sums[0];
}

void row_share(const float* x, float* out, int rows, int cols) {
    row_share_kernel<<<rows, THREADS>>>(x, out, cols);
}
