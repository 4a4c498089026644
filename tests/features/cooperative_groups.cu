// Cooperative groups: the block, tiles of a warp, threads that are together in a branch.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "expect.cuh"

namespace cg = cooperative_groups;

__global__ void blocks() {
    __shared__ int box[192];
    cg::thread_block block = cg::this_thread_block();
    const unsigned rank = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    EXPECT(block.thread_rank(), rank);
    EXPECT(block.size(), 192u);
    EXPECT(block.num_threads(), 192u);
    EXPECT(block.group_index().x, blockIdx.x);
    EXPECT(block.thread_index().y, threadIdx.y);
    EXPECT(block.dim_threads().z, 2u);
    box[rank] = rank;
    block.sync();  // the box is full
    EXPECT(box[191 - rank], 191 - rank);
    cg::sync(block);  // the box has been read
    box[rank] = -int(rank);
    cg::sync(block);  // the box is full again
    EXPECT(box[(rank + 1) % 192], -int((rank + 1) % 192));
}

template <int N>
__device__ void tiles_of() {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<N>(block);
    const int lane = threadIdx.x % N, first = threadIdx.x - lane;
    EXPECT(tile.size(), unsigned(N));
    EXPECT(tile.num_threads(), unsigned(N));
    EXPECT(tile.thread_rank(), unsigned(lane));
    EXPECT(tile.meta_group_rank(), threadIdx.x / N);
    EXPECT(tile.meta_group_size(), blockDim.x / N);

    const int mine = threadIdx.x * 10;
    EXPECT(tile.shfl(mine, 0), first * 10);
    EXPECT(tile.shfl(mine, N - 1), (first + N - 1) * 10);
    EXPECT(tile.shfl_down(mine, 1), (lane + 1 < N ? threadIdx.x + 1 : threadIdx.x) * 10);
    EXPECT(tile.shfl_up(mine, 1), (lane > 0 ? threadIdx.x - 1 : threadIdx.x) * 10);
    if (N > 1) EXPECT(tile.shfl_xor(0.5 * mine, 1), 5.0 * (threadIdx.x ^ 1));
    EXPECT(tile.any(lane == N - 1) != 0, true);
    EXPECT(tile.all(lane < N - 1) != 0, false);
    EXPECT(tile.ballot(lane == N - 1), 1u << (N - 1));
    EXPECT(tile.match_any(lane / 2), N == 1 ? 1u : 3u << lane / 2 * 2);
    int agree = 0;
    EXPECT(tile.match_all(first, agree), N == 32 ? ~0u : (1u << N) - 1);
    EXPECT(agree != 0, true);

    EXPECT(cg::reduce(tile, lane + 1, cg::plus<int>()), N * (N + 1) / 2);
    EXPECT(cg::reduce(tile, 2.0f - lane, cg::less<float>()), 3.0f - N);
    EXPECT(cg::reduce(tile, lane, cg::greater<int>()), N - 1);
    EXPECT(cg::reduce(tile, 1u << lane, cg::bit_or<unsigned>()), N == 32 ? ~0u : (1u << N) - 1);
    EXPECT(cg::reduce(tile, 15 ^ (lane & 1), cg::bit_and<int>()), N == 1 ? 15 : 14);
    EXPECT(cg::reduce(tile, 1, cg::bit_xor<int>()), N == 1 ? 1 : 0);
    EXPECT(cg::inclusive_scan(tile, lane + 1), (lane + 1) * (lane + 2) / 2);
    EXPECT(cg::inclusive_scan(tile, lane % 3, cg::greater<int>()), lane < 2 ? lane : 2);
    EXPECT(cg::exclusive_scan(tile, lane + 1), lane * (lane + 1) / 2);
    EXPECT(cg::exclusive_scan(tile, 2u, cg::plus<unsigned>()), 2u * lane);

    __shared__ int box[128];
    box[threadIdx.x] = threadIdx.x;
    tile.sync();  // the tile's values are there
    EXPECT(box[first + N - 1 - lane], first + N - 1 - lane);
    block.sync();  // the box may be used again
}
__global__ void tiles() {
    tiles_of<32>();
    tiles_of<16>();
    tiles_of<8>();
    tiles_of<4>();
    tiles_of<2>();
    tiles_of<1>();
}

// A tile of a tile ranks within its parent.
__global__ void nested() {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto four = cg::tiled_partition<4>(warp);
    EXPECT(four.meta_group_rank(), threadIdx.x % 32 / 4);
    EXPECT(four.meta_group_size(), 8u);
    EXPECT(four.shfl(int(threadIdx.x), 2), int(threadIdx.x / 4 * 4 + 2));
    cg::thread_group eight = cg::tiled_partition(cg::this_thread_block(), 8);
    EXPECT(eight.size(), 8u);
    EXPECT(eight.thread_rank(), threadIdx.x % 8);
    eight.sync();
}

// Any group will do for a function that takes a thread_group.
__device__ int sum_of(cg::thread_group group, int* box, int value) {
    const int rank = group.thread_rank();
    for (int half = group.size() / 2; half > 0; half /= 2) {
        box[rank] = value;
        group.sync();  // all values are there
        if (rank < half) value += box[rank + half];
        group.sync();  // all values have been read
    }
    return value;
}
__global__ void any_group() {
    __shared__ int box[128];
    auto block = cg::this_thread_block();
    const int block_sum = sum_of(block, box, threadIdx.x);
    if (threadIdx.x == 0) EXPECT(block_sum, 127 * 128 / 2);
    block.sync();  // the box may be used again
    auto tile = cg::tiled_partition<16>(block);
    const int tile_sum = sum_of(tile, box + threadIdx.x / 16 * 16, 1);
    if (tile.thread_rank() == 0) EXPECT(tile_sum, 16);
}

// The threads that are together in a branch; an even number of them is not asked for.
__global__ void coalesced(int* counter, unsigned* members) {
    if (threadIdx.x % 3 == 0) {
        cg::coalesced_group active = cg::coalesced_threads();
        const unsigned rank = active.thread_rank(), size = active.size();
        EXPECT(rank < size, true);
        EXPECT(active.shfl(rank, 0), 0u);
        EXPECT(active.shfl(rank, size - 1), size - 1);
        EXPECT(active.all(threadIdx.x % 3 == 0) != 0, true);
        EXPECT(active.ballot(1), size == 32 ? ~0u : (1u << size) - 1);
        EXPECT(active.shfl_down(int(rank), 1), int(rank + 1 < size ? rank + 1 : rank));
        EXPECT(active.shfl_up(int(rank), 1), int(rank > 0 ? rank - 1 : rank));
        EXPECT(cg::reduce(active, int(rank), cg::plus<int>()), int(size * (size - 1) / 2));
        EXPECT(cg::inclusive_scan(active, 1, cg::plus<int>()), int(rank + 1));
        active.sync();
        int before = 0;
        if (rank == 0) before = atomicAdd(counter, size);
        before = active.shfl(before, 0);
        atomicOr(&members[threadIdx.x / 32], 1u << threadIdx.x % 32);
    }
}

__global__ void parts() {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const int lane = threadIdx.x;
    auto third = cg::labeled_partition(warp, lane % 3);
    EXPECT(third.size(), lane % 3 == 2 ? 10u : 11u);
    EXPECT(third.thread_rank(), unsigned(lane / 3));
    EXPECT(cg::reduce(third, 1, cg::plus<int>()), int(third.size()));
    auto half = cg::binary_partition(warp, lane >= 20);
    EXPECT(half.size(), lane >= 20 ? 12u : 20u);
    EXPECT(half.shfl(lane, 0), lane >= 20 ? 20 : 0);
}

__global__ void grids(unsigned* stamps) {
    cg::grid_group grid = cg::this_grid();
    EXPECT(grid.size(), 5 * 64);
    EXPECT(grid.thread_rank(), blockIdx.x * 64 + threadIdx.x);
    EXPECT(grid.block_rank(), blockIdx.x);
    EXPECT(grid.num_blocks(), 5);
    stamps[grid.thread_rank()] += 1;
}

int main() {
    blocks<<<2, dim3(8, 12, 2)>>>();
    tiles<<<2, 128>>>();
    nested<<<1, 64>>>();
    any_group<<<1, 128>>>();
    Buffer<int> counter(1);
    Buffer<unsigned> members(2);
    coalesced<<<1, 64>>>(counter.device, members.device);
    counter.download(), members.download();
    EXPECT(counter[0], 22);
    EXPECT(members[0], 0x49249249u);
    parts<<<1, 32>>>();
    Buffer<unsigned> stamps(5 * 64);
    grids<<<5, 64>>>(stamps.device);
    stamps.download();
    for (int i = 0; i < 5 * 64; ++i) EXPECT(stamps[i], 1u);
    return finish();
}
