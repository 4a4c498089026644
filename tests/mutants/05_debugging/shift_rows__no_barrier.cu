// reject: race
// Wrong: a tree without a barrier between its steps

// fault: one thread does the work, line 10 or 12
constexpr int THREADS = 256;

// x: (rows, cols), out: (rows, cols). Each row minus its largest element.
// One thread owns every 256th element of a row. One block owns a row.
__global__ void shift_rows_kernel(const float* x, float* out, int cols) {
    __shared__ float best[THREADS];
    int row = blockIdx.x, t = threadIdx.x;
    float largest = -INFINITY;
    for (int c = t; c < cols; c += THREADS) largest = fmaxf(largest, x[row * cols + c]);
    best[t] = largest;
    __syncthreads();  // all candidates are there before the first step reads them
    for (int step = THREADS / 2; step > 0; step /= 2) {
        if (t < step) best[t] = fmaxf(best[t], best[t + step]);
    }
    largest = best[0];
    for (int c = t; c < cols; c += THREADS) out[row * cols + c] = x[row * cols + c] - largest;
}

void shift_rows(const float* x, float* out, int rows, int cols) {
    shift_rows_kernel<<<rows, THREADS>>>(x, out, cols);
}
