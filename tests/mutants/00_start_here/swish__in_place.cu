// reject: input modified
// Fault: works in x and copies the result
// x, out: n floats each. out[i] = x[i] / (1 + e^(-x[i])), which is x * sigmoid(x)
// One thread owns one element. One block owns 256 neighbouring elements.
__global__ void swish_kernel(float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        x[i] = x[i] / (1.0f + expf(-x[i]));
        out[i] = x[i];
    }
}

void swish(float* x, float* out, int n) {
    int threads = 256;
    int blocks = (n + threads - 1) / threads;
    swish_kernel<<<blocks, threads>>>(x, out, n);
}
