// fault: ?
constexpr int THREADS = 256;

// x: (rows, cols), out: (rows, cols). Each row minus its largest element.
// One thread owns every 256th element of a row. One block owns a row.
__global__ void shift_rows_kernel(const float* x, float* out, int cols) {
    __shared__ float most;
    int row = blockIdx.x, t = threadIdx.x;
    if (t == 0) {
        most = -INFINITY;
        for (int c = 0; c < cols; c++) most = fmaxf(most, x[row * cols + c]);
    }
    __syncthreads();  // the largest element is known before anyone subtracts it
    float largest = most;
    for (int c = t; c < cols; c += THREADS) out[row * cols + c] = x[row * cols + c] - largest;
}

void shift_rows(const float* x, float* out, int rows, int cols) {
    shift_rows_kernel<<<rows, THREADS>>>(x, out, cols);
}
