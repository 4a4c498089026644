// Blocks of one launch that wait for each other, in memory: a scan that looks back, a barrier of
// the grid, a lock that is passed on in order.
#include "check.cuh"

// Each block takes a ticket, so that the blocks it looks back at have begun.
enum Status : int { kNothing, kSumOfBlock, kSumOfAll };

__global__ void scan(const int* x, int* out, int n, unsigned* tickets, volatile int* status,
                     volatile int* sums, volatile int* sums_so_far) {
    __shared__ int parts[64], before;
    __shared__ unsigned ticket;
    const int thread = threadIdx.x;
    if (thread == 0) ticket = atomicAdd(tickets, 1);
    __syncthreads();  // all know the ticket
    const int block = ticket, i = block * 64 + thread;
    parts[thread] = i < n ? x[i] : 0;
    for (int step = 1; step < 64; step *= 2) {
        __syncthreads();  // the parts of the last step are there
        const int more = thread >= step ? parts[thread - step] : 0;
        __syncthreads();  // and read
        parts[thread] += more;
    }
    __syncthreads();  // parts[63] is the block's sum
    if (thread == 0) {
        sums[block] = parts[63];
        __threadfence();  // the sum comes before what tells of it
        atomicExch((int*)&status[block], kSumOfBlock);
        before = 0;
        for (int earlier = block - 1; earlier >= 0; --earlier) {
            int told;
            while ((told = atomicAdd((int*)&status[earlier], 0)) == kNothing) {
            }
            __threadfence();
            before += told == kSumOfAll ? sums_so_far[earlier] : sums[earlier];
            if (told == kSumOfAll) break;
        }
        sums_so_far[block] = before + parts[63];
        __threadfence();
        atomicExch((int*)&status[block], kSumOfAll);
    }
    __syncthreads();  // all know what comes before
    if (i < n) out[i] = before + parts[thread];
}

__device__ void meet_grid(unsigned* come, unsigned rounds) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(come, 1);
        while (atomicAdd(come, 0) < gridDim.x * rounds) __nanosleep(100);
        __threadfence();
    }
    __syncthreads();
}
__global__ void smooth(int* from, int* to, unsigned* come, int rounds) {
    const int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int round = 1; round <= rounds; ++round) {
        to[i] = from[(i + n - 1) % n] + from[(i + 1) % n];
        meet_grid(come, round);
        int* const last = from;
        from = to;
        to = last;
    }
}

// Every thread waits: nobody else of its block could go on.
__global__ void last_first(int* turn, int* order) {
    while (atomicAdd(turn, 0) != gridDim.x - 1 - blockIdx.x) {
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        order[blockIdx.x] = atomicAdd(turn, 0);
        __threadfence();
        atomicAdd(turn, 1);
    }
}

int main() {
    int wrong = 0;
    const int n = 3000, blocks = (n + 63) / 64;
    std::vector<int> x(n);
    for (int i = 0; i < n; ++i) x[i] = i % 17 - 5;
    std::vector<int> none(blocks);
    int* out = to_device(x);
    scan<<<blocks, 64>>>(to_device(x), out, n, to_device(std::vector<unsigned>(1)), to_device(none),
                         to_device(none), to_device(none));
    const std::vector<int> scanned = to_host(out, n);
    for (int i = 0, sum = 0; i < n; ++i) wrong += scanned[i] != (sum += x[i]);

    std::vector<int> row(x.begin(), x.begin() + 8 * 32), next(row);
    int *from = to_device(row), *to = to_device(row);
    smooth<<<8, 32>>>(from, to, to_device(std::vector<unsigned>(1)), 6);
    for (int round = 0; round < 6; ++round, row = next)
        for (int i = 0; i < 256; ++i) next[i] = row[(i + 255) % 256] + row[(i + 1) % 256];
    const std::vector<int> smoothed = to_host(from, 256);
    for (int i = 0; i < 256; ++i) wrong += smoothed[i] != row[i];

    int* order = to_device(std::vector<int>(40));
    last_first<<<40, 64>>>(to_device(std::vector<int>(1)), order);
    const std::vector<int> ordered = to_host(order, 40);
    for (int b = 0; b < 40; ++b) wrong += ordered[b] != 39 - b;
    return verdict("blocks_that_wait", wrong);
}
