// BEGIN SOLUTION
// fault: tail dropped, line 15 or 16 or 23 or 24
// STARTER: // fault: ?
// END SOLUTION
constexpr int MOST = 256;

// A: (rows, cols), x: (cols), y: (rows). y = A * x
// One thread owns every blockDim.x-th product of a row. One block owns a row; it has a thread for
// each column, at most MOST threads.
__global__ void matvec_kernel(const float* A, const float* x, float* y, int cols) {
    __shared__ float sums[MOST];
    int row = blockIdx.x, t = threadIdx.x;
    float sum = 0.0f;
    for (int c = t; c < cols; c += blockDim.x) sum += A[row * cols + c] * x[c];
    sums[t] = sum;
    __syncthreads();  // all sums are there before the first step reads them
    // BEGIN SOLUTION
    for (int count = blockDim.x; count > 1; count = (count + 1) / 2) {
        int half = (count + 1) / 2;  // of an odd count the middle one waits for the next step
        if (t + half < count) sums[t] += sums[t + half];
        __syncthreads();  // this step is complete before the next one reads what it wrote
    }
    // STARTER: for (int step = blockDim.x / 2; step > 0; step /= 2) {
    // STARTER:     if (t < step) sums[t] += sums[t + step];
    // STARTER:     __syncthreads();  // this step is complete before the next one reads what it wrote
    // STARTER: }
    // END SOLUTION
    if (t == 0) y[row] = sums[0];
}

void matvec(const float* A, const float* x, float* y, int rows, int cols) {
    int threads = cols < MOST ? cols : MOST;
    matvec_kernel<<<rows, threads>>>(A, x, y, cols);
}
