// x, out: n floats each. out[i] = x[i] / (1 + e^(-x[i]))
// One thread owns elements i, i + stride, i + 2 * stride, ... where the grid has stride threads.
// One block owns 256 neighbours in each step. Changed from `swish`: any grid; loads n floats.
__global__ void swish_grid_stride_kernel(const float* x, float* out, int n) {
    // BEGIN SOLUTION
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        out[i] = x[i] / (1.0f + expf(-x[i]));
    }
    // END SOLUTION
}

// The caller chooses the number of blocks. It need not fit n.
void swish_grid_stride(const float* x, float* out, int n, int blocks) {
    int threads = 256;
    swish_grid_stride_kernel<<<blocks, threads>>>(x, out, n);
}
