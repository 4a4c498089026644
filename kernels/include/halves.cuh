// Floats as halves. From exercise 10.2.
#pragma once

#include <cuda_fp16.h>

// Four floats as halves, the nearest of each: in two registers.
__device__ inline uint2 as_halves(float4 v) {
    __half2 left = __floats2half2_rn(v.x, v.y), right = __floats2half2_rn(v.z, v.w);
    return {*reinterpret_cast<unsigned*>(&left), *reinterpret_cast<unsigned*>(&right)};
}
