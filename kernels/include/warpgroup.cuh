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
    // The part that begins with sums[i]: 8 divides i.
    __device__ Patch from(int i) const {
        Patch part = *this;
        part.col0 += 2 * i;
        return part;
    }
    __device__ int row(int i) const { return first_row + 8 * (i / 2 % 2); }
    __device__ int at(int i) const { return left + 8 * (i / 4) + i % 2; }  // of the tile's columns
    __device__ int col(int i) const { return col0 + at(i); }
};

// The same as store(), where all columns are inside and quads may be written at once. Of each 16
// columns a lane has a pair in the first 8 and one in the second. It trades one of them with its
// neighbour, and has a quad: half as many writes, which bring more bytes to each row.
template <int SUMS>
__device__ inline void store_quads(float* out, int M, int N, const Patch& patch,
                                   const float (&sums)[SUMS]) {
    bool odd = threadIdx.x % 2;
#pragma unroll
    for (int first = 0; first < 4; first += 2) {  // one row, then the other
        float* to = out + size_t(patch.row(first)) * N + patch.col(0) + (odd ? 6 : 0);
#pragma unroll
        for (int i = first; i < SUMS; i += 8, to += 16) {
            float2 near = {sums[i], sums[i + 1]}, far = {sums[i + 4], sums[i + 5]};
            float x = __shfl_xor_sync(0xffffffffu, odd ? near.x : far.x, 1);
            float y = __shfl_xor_sync(0xffffffffu, odd ? near.y : far.y, 1);
            float4 quad = odd ? float4{x, y, far.x, far.y} : float4{near.x, near.y, x, y};
            if (patch.row(first) < M) __stcs(reinterpret_cast<float4*>(to), quad);
        }
    }
}

// out[row(i)][col(i)] = sums[i], as far as that is inside. out: (M, N). Nobody reads it again soon.
// All 32 lanes of the warp must call it.
template <int SUMS>
__device__ inline void store(float* out, int M, int N, const Patch& patch,
                             const float (&sums)[SUMS]) {
    bool quads = N % 4 == 0 && reinterpret_cast<size_t>(out) % 16 == 0;
    if (quads && patch.col0 + 2 * SUMS <= N) return store_quads(out, M, N, patch, sums);
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        int row = patch.row(i), col = patch.col(i);
        if (row < M && col < N) out[size_t(row) * N + col] = sums[i];
    }
}
