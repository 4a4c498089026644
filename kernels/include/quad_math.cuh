// Arithmetic on quads, member by member. From exercise 12.2.
#pragma once

#include "quads.cuh"

__device__ inline float4 operator+(float4 a, float4 b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}
__device__ inline float4 operator-(float4 a, float4 b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w};
}
__device__ inline float4 operator*(float4 a, float4 b) {
    return {a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w};
}
__device__ inline float4 operator-(float4 a, float b) {
    return {a.x - b, a.y - b, a.z - b, a.w - b};
}
__device__ inline float4 operator*(float4 a, float b) {
    return {a.x * b, a.y * b, a.z * b, a.w * b};
}

// The sum of the four.
__device__ inline float total(float4 a) { return (a.x + a.y) + (a.z + a.w); }
