// A block copies a tile together, with cg::memcpy_async, and waits for it.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>

#include "check.cuh"

namespace cg = cooperative_groups;

__global__ void reverse_tiles(const int* in, int* out, int n) {
    __shared__ int tile[128];
    cg::thread_block block = cg::this_thread_block();
    const int first = blockIdx.x * 128, count = n - first < 128 ? n - first : 128;
    cg::memcpy_async(block, tile, in + first, sizeof(int) * count);
    cg::wait(block);  // the tile is whole
    if (threadIdx.x < count) out[first + threadIdx.x] = tile[count - 1 - threadIdx.x];
}

int main() {
    const int n = 300;
    std::vector<int> x(n);
    for (int i = 0; i < n; ++i) x[i] = i;
    int *in = to_device(x), *out = to_device(std::vector<int>(n));
    reverse_tiles<<<3, 128>>>(in, out, n);
    const std::vector<int> got = to_host(out, n);
    int wrong = 0;
    for (int i = 0; i < n; ++i) {
        const int first = i / 128 * 128, count = n - first < 128 ? n - first : 128;
        wrong += got[i] != first + count - 1 - (i - first);
    }
    return verdict("group_copies", wrong);
}
