// Prefix sums of tiles by the library, including and excluding the thread itself.
#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>

#include "check.cuh"

namespace cg = cooperative_groups;

__global__ void scans(const int* x, int* with, int* without) {
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    const int t = threadIdx.x;
    with[t] = cg::inclusive_scan(tile, x[t], cg::plus<int>());
    without[t] = cg::exclusive_scan(tile, x[t], cg::plus<int>());
}

int main() {
    const int n = 96;
    std::vector<int> x(n);
    for (int i = 0; i < n; ++i) x[i] = i % 11;
    int *in = to_device(x), *with = to_device(x), *without = to_device(x);
    scans<<<1, n>>>(in, with, without);
    const std::vector<int> a = to_host(with, n), b = to_host(without, n);
    int wrong = 0, sum = 0;
    for (int i = 0; i < n; ++i) {
        if (i % 16 == 0) sum = 0;
        wrong += b[i] != sum;
        wrong += a[i] != (sum += x[i]);
    }
    return verdict("group_scans", wrong);
}
