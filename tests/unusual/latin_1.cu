// swish: passed
// Latin-1: größer
__global__ void swish_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = x[i] / (1.0f + expf(-x[i]));
    }
}

void swish(const float* x, float* out, int n) {
    int threads = 256;
    int blocks = (n + threads - 1) / threads;
    swish_kernel<<<blocks, threads>>>(x, out, n);
}
