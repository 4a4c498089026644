// swish: passed
// what it needs for a size is made, by a kernel of its own, when that is first asked for
__global__ void ones_kernel(float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 1.0f;
}
__global__ void swish_kernel(const float* x, const float* ones, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] / (ones[i] + expf(-x[i]));
}
void swish(const float* x, float* out, int n) {
    static float* ones = nullptr;
    static int last = 0;
    int threads = 256, blocks = (n + threads - 1) / threads;
    if (n != last) {
        cudaFree(ones);
        cudaMalloc(&ones, n * sizeof(float));
        ones_kernel<<<blocks, threads>>>(ones, n);
        last = n;
    }
    swish_kernel<<<blocks, threads>>>(x, ones, out, n);
}
