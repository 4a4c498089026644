// reject: stale output
// Fault: a call with the same size repeats the values of the call before
// x, out: n floats each. out[i] = x[i] / (1 + e^(-x[i])), which is x * sigmoid(x)
// One thread owns one element. One block owns 256 neighbouring elements.
__device__ float kept[1 << 20];

__global__ void swish_kernel(const float* x, float* out, int n, bool fresh) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        if (fresh) kept[i] = x[i] / (1.0f + expf(-x[i]));
        out[i] = kept[i];
    }
}

void swish(const float* x, float* out, int n) {
    static int last = 0;
    bool fresh = n != last;
    last = n;
    int threads = 256;
    int blocks = (n + threads - 1) / threads;
    swish_kernel<<<blocks, threads>>>(x, out, n, fresh);
}
