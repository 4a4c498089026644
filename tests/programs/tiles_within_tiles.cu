// Tiles of 16, of 4 within them, and their shuffles, votes and matches.
#include <cooperative_groups.h>

#include "check.cuh"

namespace cg = cooperative_groups;

__global__ void tiles(int* out) {
    cg::thread_block block = cg::this_thread_block();
    auto wide = cg::tiled_partition<16>(block);
    auto narrow = cg::tiled_partition<4>(wide);
    const int v = int(block.thread_rank());
    const int first = narrow.shfl(v, 0);
    const int next = wide.shfl_down(v, 1);
    const int paired = narrow.shfl_xor(v, 1);
    const unsigned odd = narrow.ballot(v % 2);
    const int all = wide.all(v < 1000), any = wide.any(v == 17);
    out[v] = first + 100 * paired + (next == v + 1) * 100000 + (odd == 10u) * 200000 +
             all * 400000 + any * 800000 + narrow.meta_group_rank() * 10000000;
}

int main() {
    const int n = 64;
    int* out = to_device(std::vector<int>(n));
    tiles<<<1, n>>>(out);
    const std::vector<int> got = to_host(out, n);
    int wrong = 0;
    for (int v = 0; v < n; ++v) {
        const int expected = v / 4 * 4 + 100 * (v ^ 1) + (v % 16 != 15) * 100000 + 200000 + 400000 +
                             (v / 16 == 1) * 800000 + v % 16 / 4 * 10000000;
        wrong += got[v] != expected;
    }
    return verdict("tiles_within_tiles", wrong);
}
