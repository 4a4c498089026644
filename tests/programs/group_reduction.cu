// cg::reduce with the library's operations and with a function of the program's own.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "check.cuh"

namespace cg = cooperative_groups;

__device__ __forceinline__ int later_wins(int a, int b) { return a > b ? a : b; }

__global__ void sums(const int* x, int* total, int* most, int n) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    const int i = cg::this_grid().thread_rank();
    const int v = i < n ? x[i] : 0;
    const int sum = cg::reduce(warp, v, cg::plus<int>());
    const int high = cg::reduce(warp, v, later_wins);
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    const int low = cg::reduce(tile, v, cg::less<int>());
    if (warp.thread_rank() == 0) {
        atomicAdd(total, sum);
        atomicMax(most, high);
    }
    if (tile.thread_rank() == 0) atomicMin(most + 1, low);
}

int main() {
    const int n = 1000;
    std::vector<int> x(n);
    int sum = 0;
    for (int i = 0; i < n; ++i) sum += x[i] = (i * 31) % 997 + 1;
    int *in = to_device(x), *total = to_device(std::vector<int>{0});
    int* most = to_device(std::vector<int>{0, 9999});
    sums<<<4, 256>>>(in, total, most, n);
    const std::vector<int> ends = to_host(most, 2);
    const int wrong = (to_host(total, 1)[0] != sum) + (ends[0] != 997) + (ends[1] != 0);
    return verdict("group_reduction", wrong);
}
