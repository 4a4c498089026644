// A histogram in shared memory, added to the global one with atomics of block and system scope.
#include "check.cuh"

__global__ void histogram(const unsigned char* data, int n, unsigned* bins) {
    __shared__ unsigned local[64];
    for (int b = threadIdx.x; b < 64; b += blockDim.x) local[b] = 0;
    __syncthreads();  // all bins are empty
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd_block(&local[data[i] >> 2], 1u);
    __syncthreads();  // the block has counted
    for (int b = threadIdx.x; b < 64; b += blockDim.x) atomicAdd_system(&bins[b], local[b]);
}

int main() {
    const int n = 10000;
    std::vector<unsigned char> data(n);
    std::vector<unsigned> expected(64);
    unsigned seed = 7;
    for (auto& d : data) {
        seed = seed * 1664525u + 1013904223u;
        d = seed >> 24;
        ++expected[d >> 2];
    }
    unsigned char* in = to_device(data);
    unsigned* bins = to_device(std::vector<unsigned>(64));
    histogram<<<6, 128>>>(in, n, bins);
    int wrong = 0;
    const std::vector<unsigned> got = to_host(bins, 64);
    for (int b = 0; b < 64; ++b) wrong += got[b] != expected[b];
    return verdict("shared_histogram", wrong);
}
