#include "linear_epilogue.cuh"

// The sum over LANES lanes that own the same rows and neighbouring quads of columns: lanes whose
// numbers differ in bits 2, 4 and 8. Each of them gets it. All 32 lanes of the warp must call it.
template <int LANES>
__device__ float sum_along_row(float value) {
    // BEGIN SOLUTION
#pragma unroll
    for (int step = 1; step < LANES; step *= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, 2 * step);
    }
    // END SOLUTION
    return value;
}

// GroupNorm of a row, without weight and bias, for groups of SIZE columns: 16, 32 or 64.
template <int SIZE>
__device__ void normalise_in_warp(float (&y)[TN]) {
    constexpr int LANES = SIZE < 4 * LANES_N ? SIZE / 4 : LANES_N;  // that share a group
    constexpr int EACH = SIZE / LANES;                              // of its columns in each lane
#pragma unroll
    for (int j = 0; j < TN; j += EACH) {  // y[j] to y[j + EACH - 1] are of one group
        // BEGIN SOLUTION
        float sum = 0.0f, squares = 0.0f;
        for (int e = j; e < j + EACH; e++) sum += y[e];
        float mean = sum_along_row<LANES>(sum) / SIZE;
        for (int e = j; e < j + EACH; e++) {
            y[e] -= mean;
            squares += y[e] * y[e];
        }
        float rstd = rsqrtf(sum_along_row<LANES>(squares) / SIZE + EPS);
        for (int e = j; e < j + EACH; e++) y[e] *= rstd;
        // END SOLUTION
    }
}

// x: (M, K), W: (N, K), b, weight, bias: (N), out: (M, N). out = GroupNorm(x * W^T + b)
// One thread owns TM x TN elements of out, in patches of 4 x 4. One block owns a tile of out: BM
// rows, and as many whole groups of `size` channels as fit into BN.
__global__ void __launch_bounds__(THREADS, 2)
    linear_groupnorm_kernel(const float* x, const float* W, const float* b, const float* weight,
                            const float* bias, float* out, int M, int N, int K, int size) {
    Tile tile(M, N, size);
    alignas(16) float sums[TM][TN] = {}, y[TN], add[TN], w[TN], c[TN];
    multiply(sums, tile, x, W, K);
    read_columns(add, b, tile);  // add[j] = b[tile.col(j)]
    read_columns(w, weight, tile);
    read_columns(c, bias, tile);
#pragma unroll 1
    for (int i = 0; i < TM; i++) {
        next_row(y, sums);
        for (int j = 0; j < TN; j++) y[j] += add[j];
        if (size == 16) normalise_in_warp<16>(y);
        if (size == 32) normalise_in_warp<32>(y);
        if (size == 64) normalise_in_warp<64>(y);
        if (size != 16 && size != 32 && size != 64) normalise_in_block(y, tile, size);
        // BEGIN SOLUTION
        for (int j = 0; j < TN; j++) y[j] = y[j] * w[j] + c[j];
        // END SOLUTION
        store_row(out, y, tile, i);
    }
}

void linear_groupnorm(const float* x, const float* W, const float* b, const float* weight,
                      const float* bias, float* out, int M, int N, int K, int groups) {
    int size = N / groups;
    linear_groupnorm_kernel<<<tiles(M, N, size), THREADS>>>(x, W, b, weight, bias, out, M, N, K,
                                                            size);
}
