// cumsum_long: passed
// as in CUB: sum and status are one word of 64 bits, so no fence is needed
#include "quads.cuh"
#include "scan.cuh"
#include "scratch.cuh"

using Word = unsigned long long;
constexpr int THREADS = 128, WARPS = THREADS / 32, QUADS = 8, TILE = 4 * QUADS * THREADS;
constexpr unsigned ALL = 0xffffffffu;
constexpr unsigned OWN = 1, UPTO = 2;

__device__ Word word(unsigned status, float sum) {
    return Word(status) << 32 | __float_as_uint(sum);
}

// The sum of all tiles before this one, by a warp.
__device__ float look_back(Word* words, int tile) {
    float sum = 0.0f;
    for (int at = tile - 1 - int(threadIdx.x % 32);; at -= 32) {
        Word told = at < 0 ? word(UPTO, 0.0f) : 0;
        while (told == 0) told = atomicAdd(&words[at], 0ull);
        unsigned ends = __ballot_sync(ALL, told >> 32 == UPTO);
        int last = ends ? __ffs(ends) - 1 : 31;
        float mine = int(threadIdx.x % 32) <= last ? __uint_as_float(unsigned(told)) : 0.0f;
        for (int step = 16; step > 0; step /= 2) mine += __shfl_xor_sync(ALL, mine, step);
        sum += mine;
        if (ends) return sum;
    }
}

__global__ void cumsum_long_kernel(const float* x, float* out, int n, Word* words, int* next) {
    __shared__ float sums[QUADS][WARPS], earlier;
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
        float upto = warp_scan(kept[i].w);
        before[i] = from_lane_before(upto);
        if (lane == 31) sums[i][warp] = upto;
    }
    __syncthreads();
    if (warp == 0) {
        float own = (&sums[0][0])[lane];
        own = warp_scan(own);
        (&sums[0][0])[lane] = own;
        float all = __shfl_sync(ALL, own, 31);
        if (lane == 0) atomicExch(&words[tile], word(tile ? OWN : UPTO, all));
        float sum = tile ? look_back(words, tile) : 0.0f;
        if (lane == 0 && tile) atomicExch(&words[tile], word(UPTO, sum + all));
        if (lane == 0) earlier = sum;
    }
    __syncthreads();
    for (int i = 0; i < QUADS; i++) {
        int c = tile * TILE + 4 * (i * THREADS + threadIdx.x), place = i * WARPS + warp;
        float more = earlier + before[i] + (place ? (&sums[0][0])[place - 1] : 0.0f);
        float4 v = {kept[i].x + more, kept[i].y + more, kept[i].z + more, kept[i].w + more};
        store4(out, 1, n, 0, c, v, c + 3 < n);
    }
}

void cumsum_long(const float* x, float* out, int n) {
    int tiles = (n + TILE - 1) / TILE;
    Scratch<Word> words(tiles + 1);
    cudaMemsetAsync(words.data, 0, (tiles + 1) * sizeof(Word));
    cumsum_long_kernel<<<tiles, THREADS>>>(x, out, n, words.data,
                                           reinterpret_cast<int*>(words.data + tiles));
}
