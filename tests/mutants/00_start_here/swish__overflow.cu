// reject: nan
// Fault: e^x / (1 + e^x) is infinity over infinity for large x
// x, out: n floats each. out[i] = x[i] / (1 + e^(-x[i])), which is x * sigmoid(x)
// One thread owns one element. One block owns 256 neighbouring elements.
__global__ void swish_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = x[i] * (expf(x[i]) / (1.0f + expf(x[i])));
    }
}

void swish(const float* x, float* out, int n) {
    int threads = 256;
    int blocks = (n + threads - 1) / threads;
    swish_kernel<<<blocks, threads>>>(x, out, n);
}
