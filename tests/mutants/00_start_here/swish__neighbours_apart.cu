// reject: gate
// Fault: right values, but neighbouring threads take elements that lie far apart
// x, out: n floats each. out[i] = x[i] / (1 + e^(-x[i])), which is x * sigmoid(x)
__global__ void swish_kernel(const float* x, float* out, int n) {
    int i = threadIdx.x * gridDim.x + blockIdx.x;
    if (i < n) {
        out[i] = x[i] / (1.0f + expf(-x[i]));
    }
}

void swish(const float* x, float* out, int n) {
    int threads = 256;
    int blocks = (n + threads - 1) / threads;
    swish_kernel<<<blocks, threads>>>(x, out, n);
}
