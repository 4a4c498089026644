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
// Beyond 2^100 and below 2^-100 it does not; some go in floats.
__device__ inline int exponent_of(float most) {
    return most > 0.0f ? max(-100, min(100, ilogbf(most))) - 14 : 0;
}

// Whether halves hold v, scaled, with fewer than 19 bits: the low half ends at 2^-24. They hold 0.
__device__ inline bool imprecise(float v) { return v != 0.0f && fabsf(v) < 0.015625f; }
__device__ inline int imprecise(float4 v) {  // how many of four
    return imprecise(v.x) + imprecise(v.y) + imprecise(v.z) + imprecise(v.w);
}

// How many elements of a row may be imprecise, of `cols`: so many lie below 2^-6 where most lie
// around 1, and the largest is 2^15 times as large. An outlier above that leaves too few bits.
__device__ inline bool too_wide(int imprecise, int cols) { return imprecise > cols / 32; }

// What the halves of a row are multiplied by. NaN where the row's range is too wide for them: then
// no result is finite, and each is added up in floats.
__device__ inline float scale_of(int exponent, int imprecise, int cols) {
    return too_wide(imprecise, cols) ? NAN : ldexpf(1.0f, exponent);
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

// The sum of the counts of THREADS threads. All of them must call it.
template <int THREADS>
__device__ inline int block_count(int count) {
    __shared__ int counts[THREADS / 32];
    count = __reduce_add_sync(0xffffffffu, count);
    if (threadIdx.x % 32 == 0) counts[threadIdx.x / 32] = count;
    __syncthreads();  // the count of every warp is there
    count = 0;
    for (int i = 0; i < THREADS / 32; i++) count += counts[i];
    return count;
}

// A matrix of floats: element (r, k) is at data[r * row + k * along].
struct Floats {
    const float* data;
    size_t row, along;

    // Whether four elements along k may be read at once, of rows of length K.
    __device__ bool in_quads(int K) const {
        return along == 1 && row % 4 == 0 && K % 4 == 0 && aligned(data);
    }
    // Elements (r, k) to (r, k + 3); 0 for those from K on.
    template <bool QUADS>
    __device__ float4 load(int r, int k, int K) const {
        const float* from = data + r * row + k * along;
        if (QUADS) return quad(from);
        return {from[0], k + 1 < K ? from[along] : 0.0f, k + 2 < K ? from[2 * along] : 0.0f,
                k + 3 < K ? from[3 * along] : 0.0f};
    }
};

// sums[r][c] += a[r][k] * b[c][k] over every 32nd quad of K, in floats, for 4 rows of a, from row0
// on, and 8 of b, from col0 on: as many as a thread has registers to load at once. Bit r of `rows`
// and bit c of `cols` say which of them are read.
template <bool QUADS>
__device__ inline void add_dots(float (&sums)[4][8], Floats a, int row0, unsigned rows, Floats b,
                                int col0, unsigned cols, int K) {
    for (int k = threadIdx.x % 32 * 4; k < K; k += 128) {
        float4 of_a[4], of_b[8];
#pragma unroll
        for (int r = 0; r < 4; r++) {
            of_a[r] = rows >> r & 1 ? a.load<QUADS>(row0 + r, k, K) : float4{};
        }
#pragma unroll
        for (int c = 0; c < 8; c++) {
            of_b[c] = cols >> c & 1 ? b.load<QUADS>(col0 + c, k, K) : float4{};
        }
#pragma unroll
        for (int r = 0; r < 4; r++) {
#pragma unroll
            for (int c = 0; c < 8; c++) {
                sums[r][c] += of_a[r].x * of_b[c].x + of_a[r].y * of_b[c].y;
                sums[r][c] += of_a[r].z * of_b[c].z + of_a[r].w * of_b[c].w;
            }
        }
    }
}

// y: of a tile of 8 x 8 elements of a * b^T, from (row0, col0) on, row lane / 4, columns
// lane % 4 * 2 and the next, as products of tensor cores leave them. Those that are not finite are
// added up again in floats, by the whole warp.
// a: (rows, K), b: (cols, K). All 32 lanes of the warp must call it.
__device__ inline float2 add_in_floats(float2 y, Floats a, int row0, int rows, Floats b, int col0,
                                       int cols, int K) {
    constexpr unsigned ALL = 0xffffffff;
    int lane = threadIdx.x % 32, row = row0 + lane / 4, col = col0 + lane % 4 * 2;
    bool needs_x = row < rows && col < cols && !isfinite(y.x);
    bool needs_y = row < rows && col + 1 < cols && !isfinite(y.y);
    unsigned mine = needs_x | needs_y << 1;
    if (!__any_sync(ALL, mine)) return y;
    unsigned of_row = __reduce_or_sync(ALL, mine ? 1u << lane / 4 : 0);
    unsigned of_col = __reduce_or_sync(ALL, mine << lane % 4 * 2);
    bool quads = a.in_quads(K) && b.in_quads(K);
    for (int half = 0; half < 8; half += 4) {  // of the rows
        unsigned some = of_row >> half & 15;
        if (!some) continue;
        float sums[4][8] = {};
        if (quads) add_dots<true>(sums, a, row0 + half, some, b, col0, of_col, K);
        else add_dots<false>(sums, a, row0 + half, some, b, col0, of_col, K);
#pragma unroll
        for (int r = 0; r < 4; r++) {
#pragma unroll
            for (int c = 0; c < 8; c++) {
                float sum = sums[r][c];
                for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(ALL, sum, step);
                if (lane != (half + r) * 4 + c / 2) continue;
                if (c % 2 == 0 && needs_x) y.x = sum;
                if (c % 2 == 1 && needs_y) y.y = sum;
            }
        }
    }
    return y;
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
    int few = 0;  // elements for which halves have too few bits
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        float4 v = {kept[i].x * up, kept[i].y * up, kept[i].z * up, kept[i].w * up};
        few += imprecise(v);
        Halves h = halves(v);
        highs[threadIdx.x + i * SPLITTERS] = h.high;
        lows[threadIdx.x + i * SPLITTERS] = h.low;
    }
    few = block_count<SPLITTERS>(few);
    if (threadIdx.x == 0) scale[blockIdx.x] = scale_of(exponent, few, cols);
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
    int few = 0;  // elements for which halves have too few bits
    for (int q = lane; q < padded / 4; q += 32) {
        float4 v = load4(row, 1, cols, 0, 4 * q, false);
        v = {v.x * up, v.y * up, v.z * up, v.w * up};
        few += imprecise(v);
        Halves h = halves(v);
        highs[q] = h.high;
        lows[q] = h.low;
    }
    few = __reduce_add_sync(0xffffffffu, few);
    if (lane == 0) scale[r] = scale_of(exponent, few, cols);
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
