// A dot product of halves by pairs, summed in float.
#include <cuda_fp16.h>

#include "check.cuh"

__global__ void dot(const half2* a, const half2* b, int pairs, float* total) {
    float sum = 0;
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
        const float2 p = __half22float2(__hmul2(a[i], b[i]));
        sum += p.x + p.y;
    }
    for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0) atomicAdd(total, sum);
}

int main() {
    const int n = 512;
    std::vector<half> a(n), b(n);
    float expected = 0;
    for (int i = 0; i < n; ++i) {
        a[i] = __float2half(0.25f * (i % 9));
        b[i] = __float2half(i % 2 ? 1.0f : -0.5f);
        expected += __half2float(a[i]) * __half2float(b[i]);
    }
    half *ad = to_device(a), *bd = to_device(b);
    float* total = to_device(std::vector<float>(1));
    dot<<<1, 64>>>((half2*)ad, (half2*)bd, n / 2, total);
    return verdict("half_dot_product", differ(to_host(total, 1)[0], expected));
}
