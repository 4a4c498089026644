// One launch, whose last block, told by a counter, adds up what the others have written.
#include "check.cuh"

__device__ unsigned finished = 0;

__global__ void sum(const int* x, int n, volatile int* parts, int* total) {
    __shared__ int part;
    __shared__ bool last;
    if (threadIdx.x == 0) part = 0;
    __syncthreads();  // it is 0
    int mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        mine += x[i];
    atomicAdd(&part, mine);
    __syncthreads();  // the block's part is whole
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = part;
        __threadfence();
        last = atomicInc(&finished, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();  // all know whether it is the last
    if (last && threadIdx.x == 0) {
        int all = 0;
        for (int b = 0; b < gridDim.x; ++b) all += parts[b];
        *total = all;
        finished = 0;
    }
}

int main() {
    const int n = 3000;
    std::vector<int> x(n);
    int expected = 0, wrong = 0;
    for (int i = 0; i < n; ++i) expected += x[i] = i % 13;
    int *in = to_device(x), *parts = to_device(std::vector<int>(7)), *total = to_device(x);
    for (int round = 0; round < 2; ++round) {
        sum<<<7, 64>>>(in, n, parts, total);
        wrong += to_host(total, 1)[0] != expected;
    }
    return verdict("last_block", wrong);
}
