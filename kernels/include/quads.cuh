// Quads: four neighbouring floats that are read or written at once. From exercise 03.3.
#pragma once

// The four floats at p as one value. p must lie at a multiple of 16 bytes.
__device__ inline float4& quad(float* p) { return *reinterpret_cast<float4*>(p); }
__device__ inline const float4& quad(const float* p) { return *reinterpret_cast<const float4*>(p); }

// Whether four floats at p may be read or written at once.
__device__ inline bool aligned(const float* p) { return reinterpret_cast<size_t>(p) % 16 == 0; }

// Memory -> registers: elements (row, col) to (row, col + 3) of a matrix; 0 for those outside of
// it. Where `whole`, the caller vouches that all four are inside, at a multiple of 16 bytes.
__device__ inline float4 load4(const float* matrix, int rows, int cols, int row, int col,
                               bool whole) {
    const float* from = matrix + row * cols + col;
    if (whole) return quad(from);
    float4 values = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (row < rows && col + 0 < cols) values.x = from[0];
    if (row < rows && col + 1 < cols) values.y = from[1];
    if (row < rows && col + 2 < cols) values.z = from[2];
    if (row < rows && col + 3 < cols) values.w = from[3];
    return values;
}

// The same for writing: elements outside of the matrix are left out.
__device__ inline void store4(float* matrix, int rows, int cols, int row, int col, float4 values,
                              bool whole) {
    float* to = matrix + row * cols + col;
    if (whole) {
        quad(to) = values;
        return;
    }
    if (row < rows && col + 0 < cols) to[0] = values.x;
    if (row < rows && col + 1 < cols) to[1] = values.y;
    if (row < rows && col + 2 < cols) to[2] = values.z;
    if (row < rows && col + 3 < cols) to[3] = values.w;
}
