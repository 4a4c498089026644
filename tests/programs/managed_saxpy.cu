// Managed memory, with advice and a prefetch; the host reads it after it has waited.
#include "check.cuh"

__managed__ int launches = 0;

__global__ void saxpy(float a, const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
    if (i == 0) ++launches;
}

int main() {
    const int n = 1001;
    float *x, *y;
    CHECK(cudaMallocManaged(&x, n * sizeof(float)));
    CHECK(cudaMallocManaged(&y, n * sizeof(float), cudaMemAttachGlobal));
    for (int i = 0; i < n; ++i) x[i] = i, y[i] = 1;
    cudaMemLocation device = {cudaMemLocationTypeDevice, 0};
    CHECK(cudaMemAdvise(x, n * sizeof(float), cudaMemAdviseSetReadMostly, device));
    CHECK(cudaMemPrefetchAsync(x, n * sizeof(float), device, 0, 0));
    for (int k = 0; k < 2; ++k) saxpy<<<(n + 127) / 128, 128>>>(2, x, y, n);
    CHECK(cudaDeviceSynchronize());
    int wrong = launches != 2;
    for (int i = 0; i < n; ++i) wrong += y[i] != 1 + 4.0f * i;
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
    return verdict("managed_saxpy", wrong);
}
