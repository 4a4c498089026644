// swish_grid_stride: gate
// every block loads all of x, and the first one alone computes
// says: bytes loaded from global memory
__global__ void swish_grid_stride_kernel(const float* x, float* out, int n) {
    for (int i = threadIdx.x; i < n; i += 256) {
        float v = ((const volatile float*)x)[i];
        if (blockIdx.x == 0) out[i] = v / (1.0f + expf(-v));
    }
}

void swish_grid_stride(const float* x, float* out, int n, int blocks) {
    swish_grid_stride_kernel<<<blocks, 256>>>(x, out, n);
}
