// A barrier in shared memory: threads arrive, do something of their own, and wait.
#include <cooperative_groups.h>
#include <cuda/barrier>

#include <utility>

#include "check.cuh"

__global__ void rotate(int* x, int rounds) {
    __shared__ int ring[96];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> arrived;
    auto block = cooperative_groups::this_thread_block();
    if (block.thread_rank() == 0) init(&arrived, block.size());
    block.sync();  // the barrier can be used
    int mine = x[threadIdx.x];
    for (int round = 0; round < rounds; ++round) {
        ring[threadIdx.x] = mine;
        auto token = arrived.arrive();
        const int step = 1 + round % 3;  // in the meantime
        arrived.wait(std::move(token));
        mine = ring[(threadIdx.x + step) % blockDim.x];
        arrived.arrive_and_wait();  // all have read
    }
    x[threadIdx.x] = mine;
}

int main() {
    const int n = 96, rounds = 7;
    std::vector<int> x(n);
    int wrong = 0, moved = 0;
    for (int i = 0; i < n; ++i) x[i] = i;
    for (int round = 0; round < rounds; ++round) moved += 1 + round % 3;
    int* device = to_device(x);
    rotate<<<1, n>>>(device, rounds);
    const std::vector<int> got = to_host(device, n);
    for (int i = 0; i < n; ++i) wrong += got[i] != (i + moved) % n;
    return verdict("arrive_and_wait", wrong);
}
