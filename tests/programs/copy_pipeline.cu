// A thread's own pipeline of asynchronous copies: the next tile comes while this one is summed.
#include <cuda/pipeline>

#include "check.cuh"

__global__ void sum_tiles(const float* x, int tiles, float* sums) {
    __shared__ float tile[2][64];
    cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
    auto fetch = [&](int k) {
        pipe.producer_acquire();
        cuda::memcpy_async(&tile[k % 2][threadIdx.x], &x[k * 64 + threadIdx.x], sizeof(float),
                           pipe);
        pipe.producer_commit();
    };
    float sum = 0;
    fetch(0);
    for (int k = 0; k < tiles; ++k) {
        if (k + 1 < tiles) fetch(k + 1);
        if (k + 1 < tiles) cuda::pipeline_consumer_wait_prior<1>(pipe);
        else cuda::pipeline_consumer_wait_prior<0>(pipe);
        __syncthreads();  // everybody's part of tile k
        sum += tile[k % 2][63 - threadIdx.x];
        pipe.consumer_release();
        __syncthreads();  // tile k may be replaced
    }
    sums[threadIdx.x] = sum;
}

int main() {
    const int tiles = 9;
    const std::vector<float> x = some_floats(64 * tiles);
    float *in = to_device(x), *out = to_device(std::vector<float>(64));
    sum_tiles<<<1, 64>>>(in, tiles, out);
    const std::vector<float> got = to_host(out, 64);
    int wrong = 0;
    for (int t = 0; t < 64; ++t) {
        float sum = 0;
        for (int k = 0; k < tiles; ++k) sum += x[k * 64 + 63 - t];
        wrong += differ(got[t], sum);
    }
    return verdict("copy_pipeline", wrong);
}
