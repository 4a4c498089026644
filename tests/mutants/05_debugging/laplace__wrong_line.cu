// reject: wrong diagnosis
// Wrong: mended, and the fault is looked for in another line

// fault: missing guard, line 10

// x: (rows, cols), out: (rows, cols). The four neighbours' sum minus four times the element itself;
// beyond the edges there are zeros.
// One thread owns one element of out.
__global__ void laplace_kernel(const float* x, float* out, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || col >= cols) return;
    int i = row * cols + col;
    float up = row > 0 ? x[i - cols] : 0.0f;
    float down = row + 1 < rows ? x[i + cols] : 0.0f;
    float left = col > 0 ? x[i - 1] : 0.0f;
    float right = col + 1 < cols ? x[i + 1] : 0.0f;
    out[i] = up + down + left + right - 4.0f * x[i];
}

void laplace(const float* x, float* out, int rows, int cols) {
    dim3 block(32, 8);
    dim3 grid((cols + 31) / 32, (rows + 7) / 8);
    laplace_kernel<<<grid, block>>>(x, out, rows, cols);
}
