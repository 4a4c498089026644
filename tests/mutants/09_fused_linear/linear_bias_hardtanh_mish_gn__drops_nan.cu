// reject: wrong values
// Fault: fminf() and fmaxf() turn a NaN into a limit
#include "linear_groups.cuh"

// x * tanh(ln(1 + e^x)) of x, clamped to [-1, 1]. A NaN stays one.
__device__ float hardtanh_mish(float x) {
    x = fminf(fmaxf(x, -1.0f), 1.0f);
    float n = expf(x), p = n * (n + 2.0f);
    return x * (p / (p + 2.0f));
}

// x: (M, K), W: (N, K), b, weight, bias, shift: (N), out: (M, N).
// out = GroupNorm(mish(hardtanh(x * W^T + b + shift)))
// One thread owns TM x TN elements of out, in patches of 4 x 4. One block owns a tile of out: BM
// rows, and as many whole groups of `size` channels as fit into BN.
__global__ void __launch_bounds__(THREADS, 2)
    linear_bias_hardtanh_mish_gn_kernel(const float* x, const float* W, const float* b,
                                        const float* weight, const float* bias, const float* shift,
                                        float* out, int M, int N, int K, int size) {
    Tile tile(M, N, size);
    alignas(16) float sums[TM][TN] = {}, y[TN], add[TN], w[TN], c[TN], s[TN];
    multiply(sums, tile, x, W, K);
    read_columns(add, b, tile);
    read_columns(w, weight, tile);
    read_columns(c, bias, tile);
    read_columns(s, shift, tile);
#pragma unroll 1
    for (int i = 0; i < TM; i++) {
        next_row(y, sums);
        for (int j = 0; j < TN; j++) y[j] = hardtanh_mish(y[j] + add[j] + s[j]);
        normalise(y, tile, size);
        for (int j = 0; j < TN; j++) y[j] = y[j] * w[j] + c[j];
        store_row(out, y, tile, i);
    }
}

void linear_bias_hardtanh_mish_gn(const float* x, const float* W, const float* b,
                                  const float* weight, const float* bias, const float* shift,
                                  float* out, int M, int N, int K, int groups) {
    int size = N / groups;
    linear_bias_hardtanh_mish_gn_kernel<<<tiles(M, N, size), THREADS>>>(x, W, b, weight, bias,
                                                                        shift, out, M, N, K, size);
}
