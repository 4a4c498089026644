// Reductions: many values become one. From exercises 04.4 and 04.6.
#pragma once

// The sum over aligned groups of WIDTH lanes, a power of two. Every lane gets its group's sum.
// All 32 lanes of the warp must call it.
template <int WIDTH = 32>
__device__ inline float warp_sum(float value) {
#pragma unroll
    for (int step = WIDTH / 2; step > 0; step /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, step);
    }
    return value;
}

// The smaller of two; NaN if either is NaN, as in PyTorch. fminf() would drop the NaN.
__device__ inline float smaller(float a, float b) { return a < b || isnan(a) ? a : b; }

// The smallest over aligned groups of WIDTH lanes; NaN wins. Every lane gets its group's.
// All 32 lanes of the warp must call it.
template <int WIDTH = 32>
__device__ inline float warp_min(float value) {
#pragma unroll
    for (int step = WIDTH / 2; step > 0; step /= 2) {
        value = smaller(value, __shfl_xor_sync(0xffffffffu, value, step));
    }
    return value;
}

// The sum over a block of THREADS threads in a row, a multiple of 32. Every thread gets it.
// All threads of the block must call it.
template <int THREADS>
__device__ inline float block_sum(float value) {
    __shared__ float partials[THREADS / 32];  // one value of each warp
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    value = warp_sum(value);
    if (lane == 0) partials[warp] = value;
    __syncthreads();  // the value of every warp is there before anyone reads it
    value = warp_sum(lane < THREADS / 32 ? partials[lane] : 0.0f);
    __syncthreads();  // everyone has read them before the next call overwrites them
    return value;
}
