// The elements that fit, packed: the active lanes of a warp share one atomic for their places.
#include <cooperative_groups.h>

#include <algorithm>

#include "check.cuh"

namespace cg = cooperative_groups;

__device__ int take(int* counter) {
    cg::coalesced_group active = cg::coalesced_threads();
    int first = 0;
    if (active.thread_rank() == 0) first = atomicAdd(counter, active.size());
    return active.shfl(first, 0) + active.thread_rank();
}
__global__ void positive(const int* x, int n, int* out, int* count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        if (x[i] > 0) out[take(count)] = x[i];
}

int main() {
    const int n = 1500;
    std::vector<int> x(n), expected;
    for (int i = 0; i < n; ++i) {
        x[i] = (i * 37) % 201 - 120;
        if (x[i] > 0) expected.push_back(x[i]);
    }
    int *in = to_device(x), *out = to_device(x), *count = to_device(std::vector<int>(1));
    positive<<<4, 96>>>(in, n, out, count);
    const size_t many = to_host(count, 1)[0];
    int wrong = many != expected.size();
    std::vector<int> got = to_host(out, std::min(many, expected.size()));
    std::sort(got.begin(), got.end());
    std::sort(expected.begin(), expected.end());
    for (size_t i = 0; i < got.size(); ++i) wrong += got[i] != expected[i];
    return verdict("compacted_list", wrong);
}
