// A row's largest value and its sum of exponentials, in one pass. From exercise 14.1.
#pragma once

constexpr float LOWEST = -3.402823466e38f;  // of all floats: where a maximum begins

// What is known of some values: the largest, and the sum of exp(value - m).
struct Running {
    float m = LOWEST, sum = 0.0f;  // of none
};

// Of the values of both.
__device__ inline Running merged(Running a, Running b) {
    float m = fmaxf(a.m, b.m);
    return {m, a.sum * expf(a.m - m) + b.sum * expf(b.m - m)};
}

// Of those and four more.
__device__ inline Running with(Running a, float4 v) {
    float m = fmaxf(a.m, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    float four = (expf(v.x - m) + expf(v.y - m)) + (expf(v.z - m) + expf(v.w - m));
    return {m, a.sum * expf(a.m - m) + four};
}

// Of the values of all lanes. Every lane gets it; all 32 must call it.
__device__ inline Running warp_merged(Running mine) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        float m = __shfl_xor_sync(0xffffffffu, mine.m, step);
        float sum = __shfl_xor_sync(0xffffffffu, mine.sum, step);
        mine = merged(mine, {m, sum});
    }
    return mine;
}

// Of the values of a block of THREADS threads in a row, a multiple of 32. Every thread gets it; all
// must call it, once.
template <int THREADS>
__device__ inline Running block_merged(Running mine) {
    __shared__ float m[THREADS / 32], sum[THREADS / 32];  // of each warp
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    mine = warp_merged(mine);
    if (lane == 0) m[warp] = mine.m, sum[warp] = mine.sum;
    __syncthreads();  // those of every warp are there before anyone reads them
    return warp_merged(lane < THREADS / 32 ? Running{m[lane], sum[lane]} : Running{});
}

// Memory -> registers: four values of a row, from place c on, a multiple of 4. -INFINITY beyond its
// end: its exponential is 0.
__device__ inline float4 load4_or_lowest(const float* row, int size, int c) {
    if (size % 4 == 0 && c < size) return *reinterpret_cast<const float4*>(&row[c]);
    float4 v = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    if (c + 0 < size) v.x = row[c];
    if (c + 1 < size) v.y = row[c + 1];
    if (c + 2 < size) v.z = row[c + 2];
    if (c + 3 < size) v.w = row[c + 3];
    return v;
}
