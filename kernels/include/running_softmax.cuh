// The softmax of rows whose scores come tile by tile, as a tensor core leaves them: four lanes
// share a row, and a lane has a part of two rows. From the worked kernel `flash_attention_mma`.
#pragma once

#include "exp2.cuh"

// The largest, or the sum, of what the four lanes have that share a row.
__device__ inline float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ inline float quad_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// The running maximum of both rows, and of their sums the part that this lane has seen.
struct Softmax {
    float most[2] = {-INFINITY, -INFINITY}, sum[2] = {};

    // s, of row i / 2 % 2 each: exponents of 2 become weights. Returns what the sums of both rows
    // shrink by.
    template <int N>
    __device__ float2 weigh(float (&s)[N]) {
        float tops[2] = {-INFINITY, -INFINITY}, base[2], shrink[2];
#pragma unroll
        for (int i = 0; i < N; i++) tops[i / 2 % 2] = fmaxf(tops[i / 2 % 2], s[i]);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float now = fmaxf(most[h], quad_max(tops[h]));
            base[h] = now == -INFINITY ? 0.0f : now;
            shrink[h] = most[h] == -INFINITY ? 0.0f : exp2_or_0(most[h] - now);
            most[h] = now;
            sum[h] *= shrink[h];
        }
#pragma unroll
        for (int i = 0; i < N; i++) {
            s[i] = exp2_or_0(s[i] - base[i / 2 % 2]);
            sum[i / 2 % 2] += s[i];
        }
        return {shrink[0], shrink[1]};
    }
};
