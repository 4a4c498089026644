// x, y, out: n floats each. out[i] = a * x[i] + y[i]
// One thread owns one element. One block owns 256 neighbouring elements.
__global__ void axpy_kernel(float a, const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {  // the last block may reach past the end
        out[i] = a * x[i] + y[i];
    }
}

// Runs on the CPU: decides how many threads there are, and starts them.
void axpy(float a, const float* x, const float* y, float* out, int n) {
    int threads = 256;                         // in each block
    int blocks = (n + threads - 1) / threads;  // rounded up: no element is left out
    axpy_kernel<<<blocks, threads>>>(a, x, y, out, n);
}
