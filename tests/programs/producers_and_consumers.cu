// A block's pipeline: one warp copies tiles, the other three use them.
#include <cooperative_groups.h>
#include <cuda/pipeline>

#include "check.cuh"

constexpr int kStages = 2, kTile = 96;

__global__ void halves(const int* x, int* y, int tiles) {
    __shared__ int tile[kStages][kTile];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
    auto block = cooperative_groups::this_thread_block();
    const bool produces = threadIdx.x < 32;
    const auto role = produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipe = cuda::make_pipeline(block, &state, role);
    for (int k = 0; k < tiles; ++k) {
        if (produces) {
            pipe.producer_acquire();
            for (int i = threadIdx.x; i < kTile; i += 32)
                cuda::memcpy_async(&tile[k % kStages][i], &x[k * kTile + i], sizeof(int), pipe);
            pipe.producer_commit();
        } else {
            const int i = threadIdx.x - 32;
            pipe.consumer_wait();
            y[k * kTile + i] = tile[k % kStages][kTile - 1 - i] / 2;
            pipe.consumer_release();
        }
    }
}

int main() {
    const int tiles = 5, n = tiles * kTile;
    std::vector<int> x(n);
    for (int i = 0; i < n; ++i) x[i] = 3 * i;
    int *in = to_device(x), *out = to_device(std::vector<int>(n));
    halves<<<1, 128>>>(in, out, tiles);
    const std::vector<int> got = to_host(out, n);
    int wrong = 0;
    for (int k = 0; k < tiles; ++k)
        for (int i = 0; i < kTile; ++i)
            wrong += got[k * kTile + i] != x[k * kTile + kTile - 1 - i] / 2;
    return verdict("producers_and_consumers", wrong);
}
