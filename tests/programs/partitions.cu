// Lanes that part by a label or an answer, and the leader of each part.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "check.cuh"

namespace cg = cooperative_groups;

__global__ void count_labels(const int* labels, int* counts, int* odd) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const int label = labels[threadIdx.x];
    auto same = cg::labeled_partition(warp, label);
    const int total = cg::reduce(same, 1, cg::plus<int>());
    if (same.thread_rank() == 0) atomicAdd(&counts[label], total);
    auto part = cg::binary_partition(warp, label % 2 == 1);
    if (label % 2 == 1 && part.thread_rank() == part.size() - 1) atomicAdd(odd, part.size());
    if (label == 3) {
        auto active = cg::coalesced_threads();
        if (active.thread_rank() == 0) atomicAdd(&odd[1], active.size());
    }
}

int main() {
    const int n = 128;
    std::vector<int> labels(n), expected(5);
    int odd = 0;
    for (int i = 0; i < n; ++i) {
        labels[i] = (i * i + i / 3) % 5;
        ++expected[labels[i]];
        odd += labels[i] % 2;
    }
    int *in = to_device(labels), *counts = to_device(std::vector<int>(5));
    int* odd_device = to_device(std::vector<int>(2));
    count_labels<<<1, n>>>(in, counts, odd_device);
    const std::vector<int> got = to_host(counts, 5), odds = to_host(odd_device, 2);
    int wrong = (odds[0] != odd) + (odds[1] != expected[3]);
    for (int l = 0; l < 5; ++l) wrong += got[l] != expected[l];
    return verdict("partitions", wrong);
}
