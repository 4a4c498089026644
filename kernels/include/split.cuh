// A matrix of floats as two of halves and a power of two for each row. From exercise 10.3.
#pragma once

#include <cuda_fp16.h>

#include "quads.cuh"
#include "scratch.cuh"

constexpr int SPLITTERS = 256;  // threads of a block that splits

// Four floats as halves, in two registers each: the nearest halves, and what these leave.
struct Halves {
    uint2 high, low;
};
__device__ inline Halves halves(float4 v) {
    __half2 a = __floats2half2_rn(v.x, v.y), b = __floats2half2_rn(v.z, v.w);
    float2 left = __half22float2(a), right = __half22float2(b);
    __half2 c = __floats2half2_rn(v.x - left.x, v.y - left.y);
    __half2 d = __floats2half2_rn(v.z - right.x, v.w - right.y);
    return {{reinterpret_cast<unsigned&>(a), reinterpret_cast<unsigned&>(b)},
            {reinterpret_cast<unsigned&>(c), reinterpret_cast<unsigned&>(d)}};
}

// What the largest magnitude of a row is divided by, so that it lies from 2^14 to 2^15: 2^exponent.
__device__ inline int exponent_of(float most) {
    return most > 0.0f ? max(-100, min(100, ilogbf(most))) - 14 : 0;
}

// The largest magnitude of four; a NaN is left out.
__device__ inline float largest(float4 v) {
    return fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
}

// The largest of a warp's values; a NaN is left out. All 32 lanes of the warp must call it.
__device__ inline float warp_max(float value) {
    for (int step = 16; step > 0; step /= 2) {
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
    }
    return value;
}

// The largest of the values of THREADS threads. All of them must call it.
template <int THREADS>
__device__ inline float block_max(float value) {
    __shared__ float most[THREADS / 32];
    value = warp_max(value);
    if (threadIdx.x % 32 == 0) most[threadIdx.x / 32] = value;
    __syncthreads();  // the value of every warp is there
    for (int i = 0; i < THREADS / 32; i++) value = fmaxf(value, most[i]);
    return value;
}

// x: (rows, cols), high, low: (rows, padded), scale: (rows). x = (high + low) * scale, nearly.
// One thread owns EACH quads of a row, every 256th: they stay in registers between the two passes.
// One block owns a row of 1024 * EACH columns.
template <int EACH>
__global__ void __launch_bounds__(SPLITTERS)
    split_kernel(const float* x, __half* high, __half* low, float* scale, int rows, int cols,
                 int padded) {
    const float* row = x + size_t(blockIdx.x) * cols;
    uint2* highs = reinterpret_cast<uint2*>(high + size_t(blockIdx.x) * padded);
    uint2* lows = reinterpret_cast<uint2*>(low + size_t(blockIdx.x) * padded);
    float4 kept[EACH];
    float most = 0.0f;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        kept[i] = quad(&row[(threadIdx.x + i * SPLITTERS) * 4]);
        most = fmaxf(most, largest(kept[i]));
    }
    int exponent = exponent_of(block_max<SPLITTERS>(most));
    float up = ldexpf(1.0f, -exponent);
    if (threadIdx.x == 0) scale[blockIdx.x] = ldexpf(1.0f, exponent);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        float4 v = kept[i];
        Halves h = halves({v.x * up, v.y * up, v.z * up, v.w * up});
        highs[threadIdx.x + i * SPLITTERS] = h.high;
        lows[threadIdx.x + i * SPLITTERS] = h.low;
    }
}

// The same for rows of any length. One warp owns a row, a block eight of them.
static __global__ void split_any_kernel(const float* x, __half* high, __half* low, float* scale,
                                        int rows, int cols, int padded) {
    int r = blockIdx.x * (SPLITTERS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (r >= rows) return;  // the whole warp leaves
    const float* row = x + size_t(r) * cols;
    uint2* highs = reinterpret_cast<uint2*>(high + size_t(r) * padded);
    uint2* lows = reinterpret_cast<uint2*>(low + size_t(r) * padded);
    float most = 0.0f;
    for (int i = lane; i < cols; i += 32) most = fmaxf(most, fabsf(row[i]));
    int exponent = exponent_of(warp_max(most));
    float up = ldexpf(1.0f, -exponent);
    if (lane == 0) scale[r] = ldexpf(1.0f, exponent);
    for (int q = lane; q < padded / 4; q += 32) {
        float4 v = load4(row, 1, cols, 0, 4 * q, false);
        Halves h = halves({v.x * up, v.y * up, v.z * up, v.w * up});
        highs[q] = h.high;
        lows[q] = h.low;
    }
}

// A matrix (rows, cols) as planes of halves (rows, padded), in memory of its own.
struct Planes {
    int rows, padded;
    Scratch<__half> halves;
    Scratch<float> scales;

    Planes(int rows, int cols)
        : rows(rows),
          padded((cols + 63) / 64 * 64),
          halves(size_t(2) * rows * padded),
          scales((rows + 3) / 4 * 4) {}
    __half* high() const { return halves.data; }
    __half* low() const { return halves.data + size_t(rows) * padded; }
    float* scale() const { return scales.data; }

    void split(const float* matrix, int cols) const { split(matrix, cols, rows); }

    // The first `rows` of it alone.
    void split(const float* matrix, int cols, int rows) const {
        bool quads = reinterpret_cast<size_t>(matrix) % 16 == 0;
        if (quads && cols == 8192) {
            split_kernel<8>
                <<<rows, SPLITTERS>>>(matrix, high(), low(), scale(), rows, cols, padded);
        } else if (quads && cols == 1024) {
            split_kernel<1>
                <<<rows, SPLITTERS>>>(matrix, high(), low(), scale(), rows, cols, padded);
        } else {
            int blocks = (rows + SPLITTERS / 32 - 1) / (SPLITTERS / 32);
            split_any_kernel<<<blocks, SPLITTERS>>>(matrix, high(), low(), scale(), rows, cols,
                                                    padded);
        }
    }
};
