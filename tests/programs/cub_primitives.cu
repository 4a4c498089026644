// CUB within a block: sums and scans of blocks and warps, storage that is used again, and a long
// scan whose blocks look back at each other through a prefix callback.
#include <cub/cub.cuh>

#include "check.cuh"

constexpr int kThreads = 128, kItems = 3;

struct Larger {  // an operation of one's own
    __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};

// out: sum, largest and sum of the first `valid` of each block; sums of items.
__global__ void reduce(const int* x, int* out, int valid) {
    using Block = cub::BlockReduce<int, kThreads>;
    __shared__ typename Block::TempStorage storage;
    const int value = x[blockIdx.x * kThreads + threadIdx.x];
    int items[kItems] = {value, 2 * value, 1};
    const int sum = Block(storage).Sum(value);
    __syncthreads();  // the storage is used again
    const int largest = Block(storage).Reduce(value, Larger());
    __syncthreads();
    const int some = Block(storage).Sum(value, valid);
    __syncthreads();
    const int of_items = Block(storage).Sum(items);
    if (threadIdx.x == 0) {
        int* to = out + 4 * blockIdx.x;
        to[0] = sum, to[1] = largest, to[2] = some, to[3] = of_items;
    }
}

// Parts of warps of 16 lanes: the sum of each, and running sums.
__global__ void parts(const int* x, int* sums, int* running) {
    using Reduce = cub::WarpReduce<int, 16>;
    using Scan = cub::WarpScan<int, 16>;
    __shared__ typename Reduce::TempStorage reduce_storage[kThreads / 16];
    __shared__ typename Scan::TempStorage scan_storage[kThreads / 16];
    const int t = threadIdx.x, part = t / 16;
    const int sum = Reduce(reduce_storage[part]).Sum(x[t]);
    if (t % 16 == 0) sums[part] = sum;
    int before, upto, all;
    Scan(scan_storage[part]).ExclusiveSum(x[t], before, all);
    Scan(scan_storage[part]).InclusiveSum(x[t], upto);
    running[t] = upto == before + x[t] ? before + 1000 * all : -1;
}

// A block is a tile. What comes before it, it learns from the tiles before.
struct Before {
    int tile;
    int *status, *sums, *sums_so_far;
    __device__ int operator()(int sum_of_tile) {
        int before = 0;
        if (threadIdx.x == 0) {
            tell(sums, sum_of_tile, 1);
            for (int at = tile - 1; at >= 0; --at) {
                int what;
                while ((what = atomicAdd(&status[at], 0)) == 0) {
                }
                __threadfence();
                before += what == 2 ? sums_so_far[at] : sums[at];
                if (what == 2) break;
            }
            tell(sums_so_far, before + sum_of_tile, 2);
        }
        return before;
    }
    __device__ void tell(int* place, int value, int what) {
        place[tile] = value;
        __threadfence();
        atomicExch(&status[tile], what);
    }
};

__global__ void scan(const int* x, int* out, int* tickets, int* status, int* sums, int* so_far) {
    using Block = cub::BlockScan<int, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;
    __shared__ typename Block::TempStorage storage;
    __shared__ int tile;
    if (threadIdx.x == 0) tile = atomicAdd(tickets, 1);
    __syncthreads();
    Before before{tile, status, sums, so_far};
    int value = x[tile * kThreads + threadIdx.x];
    Block(storage).InclusiveSum(value, value, before);
    out[tile * kThreads + threadIdx.x] = value;
}

// Items of a thread, and running maxima.
__global__ void scan_items(const int* x, int* out, int* largest) {
    using Block = cub::BlockScan<int, kThreads>;
    __shared__ union {
        typename Block::TempStorage sums, maxima;
    } storage;
    int items[kItems], all;
    for (int i = 0; i < kItems; ++i) items[i] = x[threadIdx.x * kItems + i];
    const int first = items[0];
    Block(storage.sums).ExclusiveSum(items, items, all);
    for (int i = 0; i < kItems; ++i) out[threadIdx.x * kItems + i] = items[i] + all;
    __syncthreads();
    Block(storage.maxima).ExclusiveScan(first, largest[threadIdx.x], -7, Larger());
}

int main() {
    const int blocks = 9, n = blocks * kThreads;
    std::vector<int> x(n);
    for (int i = 0; i < n; ++i) x[i] = (i * 37) % 101 - 40;
    const int* in = to_device(x);
    int wrong = 0;

    int* reduced = to_device(std::vector<int>(4 * blocks));
    reduce<<<blocks, kThreads>>>(in, reduced, 100);
    const std::vector<int> sums = to_host(reduced, 4 * blocks);
    for (int b = 0; b < blocks; ++b) {
        int sum = 0, largest = -100, some = 0;
        for (int t = 0; t < kThreads; ++t) {
            const int value = x[b * kThreads + t];
            sum += value, largest = std::max(largest, value), some += t < 100 ? value : 0;
        }
        wrong += sums[4 * b] != sum || sums[4 * b + 1] != largest || sums[4 * b + 2] != some;
        wrong += sums[4 * b + 3] != 3 * sum + kThreads;
    }

    int *parted = to_device(std::vector<int>(8)), *ran = to_device(std::vector<int>(kThreads));
    parts<<<1, kThreads>>>(in, parted, ran);
    const std::vector<int> of_parts = to_host(parted, 8), running = to_host(ran, kThreads);
    for (int t = 0; t < kThreads; ++t) {
        int before = 0;
        for (int i = t / 16 * 16; i < t; ++i) before += x[i];
        wrong += running[t] != before + 1000 * of_parts[t / 16];
        if (t % 16 == 15) wrong += of_parts[t / 16] != before + x[t];
    }

    int* out = to_device(std::vector<int>(n));
    const std::vector<int> none(blocks);
    scan<<<blocks, kThreads>>>(in, out, to_device(std::vector<int>(1)), to_device(none),
                               to_device(none), to_device(none));
    const std::vector<int> scanned = to_host(out, n);
    for (int i = 0, sum = 0; i < n; ++i) wrong += scanned[i] != (sum += x[i]);

    int* maxima = to_device(std::vector<int>(kThreads));
    scan_items<<<1, kThreads>>>(in, out, maxima);
    const std::vector<int> items = to_host(out, kThreads * kItems);
    const std::vector<int> largest = to_host(maxima, kThreads);
    int all = 0, most = -7;
    for (int i = 0; i < kThreads * kItems; ++i) all += x[i];
    for (int i = 0, sum = 0; i < kThreads * kItems; sum += x[i++]) wrong += items[i] != sum + all;
    for (int t = 0; t < kThreads; most = std::max(most, x[kItems * t++]))
        wrong += largest[t] != most;
    return verdict("cub_primitives", wrong);
}
