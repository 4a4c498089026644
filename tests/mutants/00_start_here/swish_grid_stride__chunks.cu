// reject: gate
// Fault: right values, but each thread walks through a stretch of its own, far from the others'
// x, out: n floats each. out[i] = x[i] / (1 + e^(-x[i])), which is x * sigmoid(x)
__global__ void swish_grid_stride_kernel(const float* x, float* out, int n) {
    int threads = gridDim.x * blockDim.x;
    int each = (n + threads - 1) / threads;
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * each;
    for (int i = first; i < first + each && i < n; i++) {
        out[i] = x[i] / (1.0f + expf(-x[i]));
    }
}

void swish_grid_stride(const float* x, float* out, int n, int blocks) {
    swish_grid_stride_kernel<<<blocks, 256>>>(x, out, n);
}
