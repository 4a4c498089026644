// Matrices as the copy engine wants them: each row begins at a multiple of 16 bytes.
#pragma once

#include "scratch.cuh"

// copy: (rows, padded), of a matrix (rows, cols). One thread owns every so many-th element of it.
template <class T>
static __global__ void copy_padded_kernel(const T* matrix, T* copy, int rows, int cols,
                                          int padded) {
    size_t threads = size_t(gridDim.x) * blockDim.x;
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < size_t(rows) * padded;
         i += threads) {
        int row = i / padded, col = i % padded;
        copy[i] = col < cols ? matrix[size_t(row) * cols + col] : T(0.0f);
    }
}

// A matrix (rows, cols): itself where it fits, or is null, else a copy whose rows are longer, with
// zeros behind each.
template <class T>
struct AlignedRows {
    static constexpr int EACH = 16 / sizeof(T);  // elements of 16 bytes

    int rows, cols;
    Scratch<T> copy;
    const T* data;

    AlignedRows(const T* matrix, int rows, int cols)
        : rows(rows),
          cols((cols + EACH - 1) / EACH * EACH),
          copy(fits(matrix, cols) ? 0 : size_t(rows) * this->cols),
          data(copy.data ? copy.data : matrix) {
        if (!copy.data) return;
        int blocks = min(1024, (rows * this->cols + 255) / 256);
        copy_padded_kernel<<<blocks, 256>>>(matrix, copy.data, rows, cols, this->cols);
    }

   private:
    static bool fits(const T* matrix, int cols) {
        return !matrix || (reinterpret_cast<size_t>(matrix) % 16 == 0 && cols % EACH == 0);
    }
};
