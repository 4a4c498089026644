// More shared memory than a block may have unasked: the attribute that asks, and the refusal
// before.
#include "check.cuh"

__global__ void mirror(const int* in, int* out, int n) {
    extern __shared__ int all[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) all[i] = in[i];
    __syncthreads();  // all are there
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = all[n - 1 - i];
}

int main() {
    const int n = 15000, bytes = n * sizeof(int);
    int most = 0;
    CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    if (most < bytes) return verdict("large_shared_arrays: too little shared memory", 0);
    std::vector<int> x(n);
    for (int i = 0; i < n; ++i) x[i] = i;
    int *in = to_device(x), *out = to_device(x);
    mirror<<<1, 128, bytes>>>(in, out, n);
    int wrong = cudaGetLastError() != cudaErrorInvalidValue;
    CHECK(cudaFuncSetAttribute(mirror, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    mirror<<<1, 128, bytes>>>(in, out, n);
    const std::vector<int> got = to_host(out, n);
    for (int i = 0; i < n; ++i) wrong += got[i] != n - 1 - i;
    return verdict("large_shared_arrays", wrong);
}
