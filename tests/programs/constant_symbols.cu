// Constant memory and device variables, written and read by name, also asynchronously.
#include "check.cuh"

__constant__ float weights[3] = {1, 1, 1};
__device__ int calls;

__global__ void filter(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) calls += 1;
    if (i > 0 && i < n - 1)
        y[i] = weights[0] * x[i - 1] + weights[1] * x[i] + weights[2] * x[i + 1];
}

int main() {
    const int n = 500;
    const std::vector<float> x = some_floats(n);
    const float chosen[3] = {0.25f, 0.5f, 0.25f};
    float *x_device = to_device(x), *y_device = to_device(std::vector<float>(n));
    CHECK(cudaMemcpyToSymbolAsync(weights, chosen, sizeof chosen, 0, cudaMemcpyHostToDevice, 0));
    filter<<<4, 128>>>(x_device, y_device, n);
    const std::vector<float> y = to_host(y_device, n);
    int wrong = 0, seen = -1;
    for (int i = 1; i < n - 1; ++i)
        wrong += differ(y[i], 0.25f * x[i - 1] + 0.5f * x[i] + 0.25f * x[i + 1]);
    CHECK(cudaMemcpyFromSymbol(&seen, calls, sizeof seen));
    void* address;
    size_t bytes;
    CHECK(cudaGetSymbolAddress(&address, weights));
    CHECK(cudaGetSymbolSize(&bytes, weights));
    float second;
    CHECK(cudaMemcpy(&second, (float*)address + 1, sizeof second, cudaMemcpyDeviceToHost));
    wrong += seen != 1 || bytes != sizeof chosen || second != 0.5f;
    return verdict("constant_symbols", wrong);
}
