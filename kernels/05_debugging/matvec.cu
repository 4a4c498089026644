// fault: ?
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
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (t < step) sums[t] += sums[t + step];
        __syncthreads();  // this step is complete before the next one reads what it wrote
    }
    if (t == 0) y[row] = sums[0];
}

void matvec(const float* A, const float* x, float* y, int rows, int cols) {
    int threads = cols < MOST ? cols : MOST;
    matvec_kernel<<<rows, threads>>>(A, x, y, cols);
}
