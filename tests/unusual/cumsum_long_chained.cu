// cumsum_long: passed
// each tile waits for the one before it, and for no other
#include "quads.cuh"
#include "scan.cuh"
#include "scratch.cuh"

constexpr int THREADS = 512, WARPS = THREADS / 32, QUADS = 4, TILE = 4 * QUADS * THREADS;

__global__ void cumsum_long_kernel(const float* x, float* out, int n, int* next, int* done,
                                   float* upto) {
    __shared__ float sums[WARPS * QUADS], earlier;
    __shared__ int ticket;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) ticket = atomicAdd(next, 1);
    __syncthreads();
    int tile = ticket;
    float4 kept[QUADS];
    float before[QUADS];
    for (int i = 0; i < QUADS; i++) {
        int c = tile * TILE + 4 * (i * THREADS + threadIdx.x);
        kept[i] = quad_scanned(load4(x, 1, n, 0, c, c + 3 < n));
        float scanned = warp_scan(kept[i].w);
        before[i] = from_lane_before(scanned);
        if (lane == 31) sums[i * WARPS + warp] = scanned;
    }
    __syncthreads();
    if (warp == 0) {
        float first = warp_scan(sums[lane]), all = __shfl_sync(0xffffffffu, first, 31);
        float second = all + warp_scan(sums[32 + lane]);
        sums[lane] = first;
        sums[32 + lane] = second;
        if (lane == 31) {  // which has the sum of the tile
            earlier = 0.0f;
            if (tile > 0) {
                while (atomicCAS(&done[tile - 1], 1, 1) == 0) __nanosleep(20);
                __threadfence();
                earlier = upto[tile - 1];
            }
            upto[tile] = earlier + second;
            __threadfence();
            atomicOr(&done[tile], 1);
        }
    }
    __syncthreads();
    for (int i = 0; i < QUADS; i++) {
        int c = tile * TILE + 4 * (i * THREADS + threadIdx.x), place = i * WARPS + warp;
        float more = earlier + (place ? sums[place - 1] : 0.0f) + before[i];
        float4 v = {kept[i].x + more, kept[i].y + more, kept[i].z + more, kept[i].w + more};
        store4(out, 1, n, 0, c, v, c + 3 < n);
    }
}

void cumsum_long(const float* x, float* out, int n) {
    int tiles = (n + TILE - 1) / TILE;
    Scratch<int> flags(tiles + 1);
    Scratch<float> upto(tiles);
    cudaMemsetAsync(flags.data, 0, (tiles + 1) * sizeof(int));
    cumsum_long_kernel<<<tiles, THREADS>>>(x, out, n, flags.data + tiles, flags.data, upto.data);
}
