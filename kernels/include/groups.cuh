// Groups of channels across lanes: GroupNorm in registers. From exercise 06.5.
#pragma once

#include "group_sizes.cuh"  // which kernel takes which size of a group
#include "reduce.cuh"

// (v - mean) / sqrt(variance + eps), over the 4 * LANES values of an aligned group of LANES lanes.
// LANES is a power of two. All 32 lanes of the warp must call it.
template <int LANES>
__device__ inline float4 normalised(float4 v, float eps) {
    float mean = warp_sum<LANES>((v.x + v.y) + (v.z + v.w)) / (4 * LANES);
    v = {v.x - mean, v.y - mean, v.z - mean, v.w - mean};
    float squares = warp_sum<LANES>((v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w));
    float rstd = rsqrtf(squares / (4 * LANES) + eps);
    return {v.x * rstd, v.y * rstd, v.z * rstd, v.w * rstd};
}
