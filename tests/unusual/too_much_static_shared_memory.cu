// swish: launch error
// 64 KB, where a block may declare 48: it must say so
// says: 65536 bytes
__global__ void k(const float* x, float* out, int n) {
    __shared__ float t[16 * 1024];
    int i = blockIdx.x * 256 + threadIdx.x;
    t[threadIdx.x] = i < n ? x[i] : 0;
    if (i < n) out[i] = t[threadIdx.x] / (1.0f + expf(-t[threadIdx.x]));
}
void swish(const float* x, float* out, int n) { k<<<(n + 255) / 256, 256>>>(x, out, n); }
