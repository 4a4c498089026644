// What a thread owns of a product of its warpgroup. From exercise 11.1.
#pragma once

// 64 rows of a matrix (M, N), from row0 on, and as many columns as the product has, from col0 on:
// sums[i] is of row(i) and col(i).
struct Patch {
    int first_row, col0, left;

    __device__ Patch(int row0, int col0) : col0(col0) {
        int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
        first_row = row0 + 16 * warp + lane / 4;
        left = lane % 4 * 2;
    }
    __device__ int row(int i) const { return first_row + 8 * (i / 2 % 2); }
    __device__ int at(int i) const { return left + 8 * (i / 4) + i % 2; }  // of the tile's columns
    __device__ int col(int i) const { return col0 + at(i); }
};

// out[row(i)][col(i)] = sums[i], as far as that is inside. out: (M, N). Nobody reads it again soon.
template <int SUMS>
__device__ inline void store(float* out, int M, int N, const Patch& patch,
                             const float (&sums)[SUMS]) {
    bool pairs = N % 2 == 0 && reinterpret_cast<size_t>(out) % 8 == 0;  // may be written at once
#pragma unroll
    for (int i = 0; i < SUMS; i += 2) {
        int row = patch.row(i), col = patch.col(i);
        if (row >= M || col >= N) continue;
        float* to = out + size_t(row) * N + col;
        if (pairs) {
            __stcs(reinterpret_cast<float2*>(to), make_float2(sums[i], sums[i + 1]));
        } else {
            to[0] = sums[i];
            if (col + 1 < N) to[1] = sums[i + 1];
        }
    }
}
