// Stream-ordered allocation: the device's pool, a pool of one's own, and what they say of
// themselves.
#include "check.cuh"

__global__ void fill(int* x, int n, int value) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = value + i;
}

int main() {
    const int n = 1000;
    int supported = 0, wrong = 0;
    CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cudaMemPool_t pool, own;
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    unsigned long long threshold = ~0ull, read_back = 0;
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &read_back));
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    CHECK(cudaMemPoolCreate(&own, &properties));
    std::vector<int> host(n);
    int* small = nullptr;
    CHECK(cudaMallocAsync(&small, 16, 0));  // the default stream
    CHECK(cudaFreeAsync(small, 0));
    for (int round = 0; round < 3; ++round) {
        int* x;
        if (round < 2) CHECK(cudaMallocAsync(&x, n * sizeof(int), stream));
        else CHECK(cudaMallocFromPoolAsync(&x, n * sizeof(int), own, stream));
        fill<<<8, 128, 0, stream>>>(x, n, round);
        CHECK(cudaMemcpyAsync(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
        CHECK(cudaFreeAsync(x, stream));
        CHECK(cudaStreamSynchronize(stream));
        for (int i = 0; i < n; ++i) wrong += host[i] != round + i;
    }
    unsigned long long used = 1;
    CHECK(cudaMemPoolGetAttribute(own, cudaMemPoolAttrUsedMemCurrent, &used));
    wrong += !supported + (read_back != threshold) + (used != 0);
    CHECK(cudaMemPoolDestroy(own));
    CHECK(cudaStreamDestroy(stream));
    return verdict("memory_pools", wrong);
}
