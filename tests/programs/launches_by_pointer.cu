// Kernels as pointers and templates, launched with an array of argument addresses, or by name.
#include "check.cuh"

template <class T>
__global__ void scale(T* x, T by, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}
__global__ void add_pair(float* x, float2 pair, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += i % 2 ? pair.y : pair.x;
}

int main() {
    int n = 200;
    float by = 3;
    float2 pair = make_float2(1, 2);
    float* x = to_device(std::vector<float>(n, 1.0f));
    void* first[] = {&x, &by, &n};
    void* second[] = {&x, &pair, &n};
    CHECK(cudaLaunchKernel((const void*)scale<float>, dim3(4), dim3(64), first, 0, 0));
    CHECK(cudaLaunchKernel((void*)&add_pair, dim3(4), dim3(64), second, 0, nullptr));
    CHECK(cudaLaunchKernel(reinterpret_cast<void*>(scale<float>), 4, 64, first));
    void (*kernel)(float*, float2, int) = add_pair;
    kernel<<<4, 64>>>(x, pair, n);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(4);
    config.blockDim = dim3(64);
    CHECK(cudaLaunchKernelEx(&config, scale<float>, x, 2.0f, n));
    const std::vector<float> got = to_host(x, n);
    int wrong = 0;
    for (int i = 0; i < n; ++i) {
        const float v = i % 2 ? 2 : 1;
        wrong += got[i] != ((3 + v) * 3 + v) * 2;
    }
    return verdict("launches_by_pointer", wrong);
}
