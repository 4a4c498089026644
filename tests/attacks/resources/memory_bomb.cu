// swish: crashed/timeout
// memory without end: it is stopped for that, or on a slow machine for its time
__global__ void swish_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] / (1.0f + expf(-x[i]));
}
void swish(const float* x, float* out, int n) {
    for (;;) {
        volatile char* p = (char*)malloc(1 << 26);
        for (int k = 0; k < 1 << 26; k += 4096) p[k] = 1;
    }
    swish_kernel<<<(n + 255) / 256, 256>>>(x, out, n);
}
