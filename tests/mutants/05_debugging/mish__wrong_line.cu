// reject: wrong diagnosis
// Wrong: mended, and the fault is looked for in another line

// fault: wrong identity, line 9

// x: (n), out: (n). out = x * tanh(log(1 + exp(x))), without tanh or log
// One thread owns every (number of threads)-th element.
__global__ void mish_kernel(const float* x, float* out, int n) {
    int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        float v = x[i];
        float e = expf(fminf(v, 20.0f));  // beyond 20 the fraction below is 1 in any case
        float both = e * (e + 2.0f);
        out[i] = v * (both / (both + 2.0f));
    }
}

void mish(const float* x, float* out, int n) {
    int blocks = n < 256 * 1056 ? (n + 255) / 256 : 1056;
    mish_kernel<<<blocks, 256>>>(x, out, n);
}
