// sum_warp: passed
// Cooperative groups add up.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
constexpr int THREADS = 256;
__global__ void sum_warp_kernel(const float* x, float* out, int n) {
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    __shared__ float sums[THREADS / 32];
    int i = blockIdx.x * THREADS + threadIdx.x;
    float sum = cg::reduce(warp, i < n ? x[i] : 0.0f, cg::plus<float>());
    if (warp.thread_rank() == 0) sums[warp.meta_group_rank()] = sum;
    block.sync();
    if (warp.meta_group_rank() == 0) {
        sum = warp.thread_rank() < THREADS / 32 ? sums[warp.thread_rank()] : 0.0f;
        sum = cg::reduce(warp, sum, cg::plus<float>());
        if (warp.thread_rank() == 0) atomicAdd(out, sum);
    }
}
void sum_warp(const float* x, float* out, int n) {
    cudaMemset(out, 0, sizeof(float));
    sum_warp_kernel<<<(n + THREADS - 1) / THREADS, THREADS>>>(x, out, n);
}
