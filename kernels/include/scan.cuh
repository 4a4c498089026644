// Running sums over the lanes of a warp, and within a quad. From exercise 15.1.
#pragma once

// The sum of the values of this lane and of all lanes before it. All 32 must call it.
__device__ inline float warp_scan(float value) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        float before = __shfl_up_sync(0xffffffffu, value, step);
        if (threadIdx.x % 32 >= step) value += before;
    }
    return value;
}

// What the lane before this one has; 0 in the first. All 32 must call it.
__device__ inline float from_lane_before(float value) {
    float before = __shfl_up_sync(0xffffffffu, value, 1);
    return threadIdx.x % 32 > 0 ? before : 0.0f;
}

// Each member becomes the sum of those up to it.
__device__ inline float4 quad_scanned(float4 v) {
    return {v.x, v.x + v.y, v.x + v.y + v.z, v.x + v.y + v.z + v.w};
}
