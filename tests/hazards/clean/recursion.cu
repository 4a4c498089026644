// Functions that call themselves, no deeper than a card's stack holds; local arrays count apart.
#include "../case.cuh"

__device__ float in_halves(const float* x, int n) {
    if (n == 1) return x[0];
    return in_halves(x, n / 2) + in_halves(x + n / 2, n - n / 2);
}
__global__ void halves(const float* x, float* out) { out[threadIdx.x] = in_halves(x, 1000); }
CASE(halves, 1, 2, zeros<float>(1000), zeros<float>(2))

__device__ float sixty(const float* x, int n) { return n ? x[n - 1] + sixty(x, n - 1) : 0.0f; }
__global__ void sixty_deep(const float* x, float* out) {
    for (int i = 0; i < 5; ++i) out[threadIdx.x] += sixty(x, 60);
}
CASE(sixty_deep, 1, 32, zeros<float>(60), zeros<float>(32))

// nvcc makes loops of these three, as g++ does.
__device__ float tail(const float* x, int n, float sum) {
    return n ? tail(x, n - 1, sum + x[n - 1]) : sum;
}
__device__ int whole(const int* x, int n) { return n ? x[n - 1] + whole(x, n - 1) : 0; }
__device__ void doubles(float* x, int n) {
    if (n == 0) return;
    x[n - 1] *= 2;
    doubles(x, n - 1);
}
__global__ void loops(const float* x, const int* y, float* out) {
    out[0] = tail(x, 1000, 0.0f);
    out[1] = whole(y, 1000);
    doubles(out, 1000);
}
CASE(loops, 1, 1, zeros<float>(1000), zeros<int>(1000), zeros<float>(1000))

__device__ float deep(const float* x, int n) { return n ? x[n - 1] + deep(x, n - 1) : 0.0f; }
__global__ void asks(const float* x, float* out) { out[threadIdx.x] = deep(x, 500); }
CASE_OF(asks_for_a_longer_stack) {
    cudaDeviceSetLimit(cudaLimitStackSize, 32 << 10);
    asks<<<1, 32>>>(zeros<float>(500), zeros<float>(32));
}

__global__ void long_arrays(const int* x, int* out) {
    int mine[20000];
    for (int i = 0; i < 20000; i += 500) mine[i] = x[i % 32];
    out[threadIdx.x] = mine[500 * threadIdx.x];
}
CASE(long_arrays, 1, 32, zeros<int>(32), zeros<int>(32))
