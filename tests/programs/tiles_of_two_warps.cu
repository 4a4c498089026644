// A tile of 64 threads, more than a warp: it has a barrier of its own, and reduces.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "check.cuh"

namespace cg = cooperative_groups;

__global__ void sums(const int* x, int* out) {
    __shared__ cg::block_tile_memory<256> scratch;
    __shared__ int seen[256];
    cg::thread_block block = cg::this_thread_block(scratch);
    auto tile = cg::tiled_partition<64>(block);
    const int t = block.thread_rank();
    seen[t] = x[t];
    tile.sync();  // of this tile only
    const int mirrored = seen[tile.meta_group_rank() * 64 + 63 - tile.thread_rank()];
    const int sum = cg::reduce(tile, mirrored, cg::plus<int>());
    const int high = cg::reduce(tile, mirrored, cg::greater<int>());
    if (tile.thread_rank() == 0) {
        out[2 * tile.meta_group_rank()] = sum;
        out[2 * tile.meta_group_rank() + 1] = high;
    }
}

int main() {
    std::vector<int> x(256);
    for (int i = 0; i < 256; ++i) x[i] = (i * 29) % 251;
    int *in = to_device(x), *out = to_device(std::vector<int>(8));
    sums<<<1, 256>>>(in, out);
    const std::vector<int> got = to_host(out, 8);
    int wrong = 0;
    for (int tile = 0; tile < 4; ++tile) {
        int sum = 0, high = 0;
        for (int i = 64 * tile; i < 64 * tile + 64; ++i) sum += x[i], high = std::max(high, x[i]);
        wrong += got[2 * tile] != sum || got[2 * tile + 1] != high;
    }
    return verdict("tiles_of_two_warps", wrong);
}
