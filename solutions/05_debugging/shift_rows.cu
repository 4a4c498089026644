// BEGIN SOLUTION
// fault: one thread does the work, line 10 or 12
// STARTER: // fault: ?
// END SOLUTION
constexpr int THREADS = 256;

// x: (rows, cols), out: (rows, cols). Each row minus its largest element.
// One thread owns every 256th element of a row. One block owns a row.
__global__ void shift_rows_kernel(const float* x, float* out, int cols) {
    // BEGIN SOLUTION
    __shared__ float best[THREADS];
    int row = blockIdx.x, t = threadIdx.x;
    float largest = -INFINITY;
    for (int c = t; c < cols; c += THREADS) largest = fmaxf(largest, x[row * cols + c]);
    best[t] = largest;
    __syncthreads();  // all candidates are there before the first step reads them
    for (int step = THREADS / 2; step > 0; step /= 2) {
        if (t < step) best[t] = fmaxf(best[t], best[t + step]);
        __syncthreads();  // this step is complete before the next one, or the end, reads it
    }
    largest = best[0];
    // STARTER: __shared__ float most;
    // STARTER: int row = blockIdx.x, t = threadIdx.x;
    // STARTER: if (t == 0) {
    // STARTER:     most = -INFINITY;
    // STARTER:     for (int c = 0; c < cols; c++) most = fmaxf(most, x[row * cols + c]);
    // STARTER: }
    // STARTER: __syncthreads();  // the largest element is known before anyone subtracts it
    // STARTER: float largest = most;
    // END SOLUTION
    for (int c = t; c < cols; c += THREADS) out[row * cols + c] = x[row * cols + c] - largest;
}

void shift_rows(const float* x, float* out, int rows, int cols) {
    shift_rows_kernel<<<rows, THREADS>>>(x, out, cols);
}
