// reject: gate
// Wrong: right, but each thread owns a stretch

// fault: wrong identity, line 11

// x: (n), out: (n). out = x * tanh(log(1 + exp(x))), without tanh or log
// One thread owns every (number of threads)-th element.
__global__ void mish_kernel(const float* x, float* out, int n) {
    int each = (n + gridDim.x * blockDim.x - 1) / (gridDim.x * blockDim.x) * 4;
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * each;
    for (int i = first; i < n && i < first + each; i++) {
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
