// reject: race
// Wrong: the first step waits, the others do not

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
    __syncthreads();
    for (int step = THREADS / 2; step > 0; step /= 2) {
        if (t < step) sums[t] += sums[t + step];
    }
    __syncthreads();  // the sum is there before anyone divides by it
    for (int c = t; c < cols; c += THREADS) out[row * cols + c] = x[row * cols + c] / sums[0];
}

void row_share(const float* x, float* out, int rows, int cols) {
    row_share_kernel<<<rows, THREADS>>>(x, out, cols);
}
