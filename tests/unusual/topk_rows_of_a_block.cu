// topk_rows: passed
// a block owns a row: each of its 8 warps has the 32 largest of every 8th stretch, and one merges
#include "sort_key.cuh"

constexpr int WARPS = 8;
constexpr unsigned ALL = 0xffffffffu;

__device__ Key sort_runs(Key key, int run) {
    int lane = threadIdx.x % 32;
    for (int step = run / 2; step > 0; step /= 2) {
        Key other = __shfl_xor_sync(ALL, key, step);
        bool larger = ((lane & step) == 0) == ((lane & run) == 0);
        key = (key > other) == larger ? key : other;
    }
    return key;
}

// best and more fall from lane 0 on: the 32 largest of both, in that order.
__device__ Key merged(Key best, Key more) {
    more = __shfl_sync(ALL, more, 31 - threadIdx.x % 32);
    return sort_runs(max(best, more), 32);
}

__global__ void topk_rows_kernel(const float* x, float* values, long long* places, int channels) {
    __shared__ Key queues[WARPS][64], bests[WARPS][32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, waiting = 0;
    const float* row = x + size_t(blockIdx.x) * channels;
    Key best = 0, bar = 0, *queue = queues[warp];
    auto merge = [&](Key more) {
        for (int run = 2; run <= 32; run *= 2) more = sort_runs(more, run);
        best = merged(best, more);
        bar = __shfl_sync(ALL, best, 31);
    };
    for (int begin = 32 * warp; begin < channels; begin += 32 * WARPS) {
        int c = begin + lane;
        Key key = c < channels ? key_of(row[c], c) : 0;
        unsigned above = __ballot_sync(ALL, key > bar);
        if (key > bar) queue[waiting + __popc(above & ~(ALL << lane))] = key;
        waiting += __popc(above);
        __syncwarp();
        if (waiting < 32) continue;
        waiting -= 32;
        merge(queue[waiting + lane]);
        __syncwarp();
    }
    merge(lane < waiting ? queue[lane] : 0);
    bests[warp][lane] = best;
    __syncthreads();
    if (warp > 0) return;
    for (int other = 1; other < WARPS; other++) best = merged(best, bests[other][lane]);
    int place = place_of(best);
    values[blockIdx.x * 32 + lane] = place < 0 ? -INFINITY : row[place];
    places[blockIdx.x * 32 + lane] = place;
}

void topk_rows(const float* x, float* values, long long* places, int rows, int channels) {
    topk_rows_kernel<<<rows, 32 * WARPS>>>(x, values, places, channels);
}
