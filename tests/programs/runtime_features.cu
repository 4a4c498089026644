// Constant and device variables, managed memory, streams, events, device printf, properties.
#include <cassert>
#include <cmath>

#include "check.cuh"

struct Filter {
    float weight[5];
    int radius;
};
__constant__ Filter filter;
__constant__ float bias = 0.25f;
__device__ float history[4];
__managed__ int launches = 0;

// y[i] = bias + the weighted neighbours of x[i]; outside of x there are zeros.
__global__ void convolve(const float* x, float* y, int n) {
    extern __shared__ float tile[];  // blockDim.x elements and a halo of `radius` on either side
    const int radius = filter.radius, i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = threadIdx.x; k < (int)blockDim.x + 2 * radius; k += blockDim.x) {
        const int from = (int)(blockIdx.x * blockDim.x) + k - radius;
        tile[k] = from >= 0 && from < n ? x[from] : 0.0f;
    }
    __syncthreads();  // the tile and its halo are whole
    if (i >= n) return;
    float sum = bias;
    for (int k = 0; k <= 2 * radius; ++k) sum += filter.weight[k] * tile[threadIdx.x + k];
    y[i] = sum;
    assert(!isnan(sum));
    if (i == 0) {
        history[launches & 3] = sum;
        launches += 1;
        printf("block %d of %d: y[0] = %.2f\n", blockIdx.x, gridDim.x, sum);
    }
}

int main() {
    cudaDeviceProp properties;
    int count = 0, device = -1;
    CHECK(cudaGetDeviceCount(&count));
    CHECK(cudaSetDevice(0));
    CHECK(cudaGetDevice(&device));
    CHECK(cudaGetDeviceProperties(&properties, device));
    std::printf("%d device(s); compute capability at least 3: %s; warps of %d\n", count,
                properties.major >= 3 ? "yes" : "no", properties.warpSize);

    const Filter host_filter = {{0.5f, 1.0f, 2.0f, 1.0f, 0.5f}, 2};
    CHECK(cudaMemcpyToSymbol(filter, &host_filter, sizeof(Filter)));
    const float zeros[4] = {0};
    CHECK(cudaMemcpyToSymbol(history, zeros, sizeof(zeros)));

    const int n = 1000, threads = 128;
    const size_t shared = (threads + 2 * host_filter.radius) * sizeof(float);
    float *x, *y;
    CHECK(cudaMallocManaged(&x, n * sizeof(float)));
    CHECK(cudaMallocManaged(&y, n * sizeof(float)));
    for (int i = 0; i < n; ++i) x[i] = i % 10;

    cudaStream_t stream;
    cudaEvent_t start, stop;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start, stream));
    for (int run = 0; run < 2; ++run)
        convolve<<<(n + threads - 1) / threads, threads, shared, stream>>>(x, y, n);
    CHECK(cudaEventRecord(stop, stream));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaStreamSynchronize(stream));
    float milliseconds = -1.0f;
    CHECK(cudaEventElapsedTime(&milliseconds, start, stop));

    int wrong = !(milliseconds >= 0.0f) || launches != 2;
    for (int i = 0; i < n; ++i) {
        float sum = 0.25f;
        for (int k = -2; k <= 2; ++k)
            if (i + k >= 0 && i + k < n) sum += host_filter.weight[k + 2] * x[i + k];
        wrong += std::fabs(y[i] - sum) > 1e-5f;
    }
    float seen[2] = {-1.0f, -1.0f};
    CHECK(cudaMemcpyFromSymbol(seen, history, sizeof(seen)));
    wrong += seen[0] != y[0] || seen[1] != y[0];

    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
    std::printf("runtime_features: %d wrong\n", wrong);
    return wrong ? 1 : 0;
}
