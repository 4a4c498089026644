// reject: race
// Fault: all blocks walk over the same elements
// x, out: n floats each. out[i] = x[i] / (1 + e^(-x[i]))
// One thread owns elements i, i + stride, i + 2 * stride, ... where stride is the number of threads
// in the grid. One block owns 256 neighbouring elements out of every stride.
__global__ void swish_grid_stride_kernel(const float* x, float* out, int n) {
    int stride = gridDim.x * blockDim.x;
    for (int i = threadIdx.x; i < n; i += stride) {
        out[i] = x[i] / (1.0f + expf(-x[i]));
    }
}

// The caller chooses the number of blocks. It need not fit n.
void swish_grid_stride(const float* x, float* out, int n, int blocks) {
    int threads = 256;
    swish_grid_stride_kernel<<<blocks, threads>>>(x, out, n);
}
