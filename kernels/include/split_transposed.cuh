// A matrix of floats, turned around, as two of halves: for products along its columns. For
// solutions/models.
#pragma once

#include "split.cuh"

constexpr int TURN_ROWS = 64, TURN_COLS = 32;  // of a tile that is turned around

// x: (rows, cols). most[c] = the largest magnitude of column c as the bits of a float, which are in
// the order of the floats: 0 before. A NaN is left out.
// One thread owns every 8th row of 256 for a column. One block of (32, 8) threads owns 32 columns.
static __global__ void column_most_kernel(const float* x, unsigned* most, int rows, int cols) {
    __shared__ float largest[8][32];
    int col = blockIdx.x * 32 + threadIdx.x, first = blockIdx.y * 256;
    float mine = 0.0f;
#pragma unroll 8
    for (int row = first + threadIdx.y; row < min(first + 256, rows); row += 8) {
        if (col < cols) mine = fmaxf(mine, fabsf(x[size_t(row) * cols + col]));
    }
    largest[threadIdx.y][threadIdx.x] = mine;
    __syncthreads();  // what all 8 warps found is there before the first warp reads it
    if (threadIdx.y > 0 || col >= cols) return;
    for (int i = 1; i < 8; i++) mine = fmaxf(mine, largest[i][threadIdx.x]);
    atomicMax(&most[col], __float_as_uint(mine));  // the same in any order
}

// x: (rows, cols), most: (cols), few: (cols), 0 before, high, low: (cols, padded), scale: (cols).
// x[r][c] = (high + low)[c][r] * scale[c], nearly; zeros behind `rows`. few[c] counts elements for
// which halves have too few bits: the warp that finds one too many writes a NaN to the column, so
// that no product of it is finite, and each is added up in floats.
// One thread owns a column of 8 rows to load, then 4 pairs of rows to store. One block of (32, 8)
// threads owns a tile.
static __global__ void split_transposed_kernel(const float* x, const unsigned* most, int* few,
                                               __half* high, __half* low, float* scale, int rows,
                                               int cols, int padded) {
    __shared__ float tile[TURN_COLS][TURN_ROWS + 1];  // one more: a column lies in 32 banks
    int row0 = blockIdx.y * TURN_ROWS, col0 = blockIdx.x * TURN_COLS;
#pragma unroll
    for (int r = threadIdx.y; r < TURN_ROWS; r += 8) {
        int row = row0 + r, col = col0 + threadIdx.x;
        bool inside = row < rows && col < cols;
        tile[threadIdx.x][r] = inside ? x[size_t(row) * cols + col] : 0.0f;
    }
    __syncthreads();  // the tile is there before it is read the other way
    int r = 2 * threadIdx.x;
#pragma unroll
    for (int c = threadIdx.y; c < TURN_COLS; c += 8) {
        int col = col0 + c;
        if (col >= cols) break;
        int exponent = exponent_of(__uint_as_float(most[col]));
        float up = ldexpf(1.0f, -exponent);
        if (row0 + r == 0) scale[col] = ldexpf(1.0f, exponent);
        float2 v = {tile[c][r] * up, tile[c][r + 1] * up};
        __half2 h = __floats2half2_rn(v.x, v.y);
        float2 left = __half22float2(h);
        size_t at = size_t(col) * padded + row0 + r;
        *reinterpret_cast<__half2*>(high + at) = h;
        *reinterpret_cast<__half2*>(low + at) = __floats2half2_rn(v.x - left.x, v.y - left.y);
        int mine = imprecise(v.x) + imprecise(v.y);
        if (!__any_sync(0xffffffffu, mine)) continue;
        int more = __reduce_add_sync(0xffffffffu, mine);
        if (threadIdx.x > 0) continue;
        int before = atomicAdd(&few[col], more);
        if (!too_wide(before, rows) && too_wide(before + more, rows)) high[at] = __float2half(NAN);
    }
}

// The launcher of both: to = the planes of matrix^T. matrix: (rows, to.rows)
inline void split_transposed(const float* matrix, int rows, const Planes& to) {
    int cols = to.rows;
    Scratch<unsigned> counts(size_t(2) * cols);  // most, and few
    unsigned* most = counts.data;
    int* few = reinterpret_cast<int*>(counts.data + cols);
    cudaMemsetAsync(most, 0, size_t(2) * cols * sizeof(unsigned));
    dim3 block(32, 8), columns((cols + 31) / 32, (rows + 255) / 256);
    column_most_kernel<<<columns, block>>>(matrix, most, rows, cols);
    dim3 tiles((cols + TURN_COLS - 1) / TURN_COLS, to.padded / TURN_ROWS);
    split_transposed_kernel<<<tiles, block>>>(matrix, most, few, to.high(), to.low(), to.scale(),
                                              rows, cols, to.padded);
}
