// The two large products of a linear layer backwards, y = x * W^T + b, as exact as fp32, on Hopper.
// Both are products along rows, as the forward's is, of a matrix that was turned around while it
// was split. For solutions/models.
#pragma once

#include "hopper_product.cuh"
#include "split_transposed.cuh"

// in: A (M, K) and B (N, K) as halves, high and low; out: (M, N). out = A * B^T
// One thread owns 64 elements of each tile, if its warpgroup multiplies. One block owns many tiles.
static __global__ void __launch_bounds__(Exact::THREADS, 1)
    product_kernel(const __grid_constant__ Operands in, float* out) {
    extern __shared__ __align__(1024) char memory[];
    Ring<Exact> ring(memory);
    int group = threadIdx.x / 128;
    if (group == CONSUMERS) return bring_all(ring, in);
    more_registers<Exact::REGISTERS>();
    for (Tiles<Exact::BN> tile(in.M, in.N); tile.more(); tile.next()) {
        Patch patch(tile.row() + 64 * group, tile.col());
        float y[Exact::BN / 2];
        multiply(y, ring, in, patch);
        ring.release_columns();
        store(out, in.M, in.N, patch, y);
    }
}

// dx = dy * W. dy: (M, N), W: (N, K), dx: (M, K).
inline void linear_dx(const float* dy, const float* W, float* dx, int M, int N, int K) {
    Floats of_dy = {dy, size_t(N), 1}, of_W = {W, 1, size_t(K)};  // W^T
    Prepared<Exact> in(of_dy, of_W, M, K, N);
    in.x.split(dy, N);
    split_transposed(W, N, in.W);
    start(product_kernel, in, Channels(), dx);
}

// dW = dy^T * x. dy: (M, N), x: (M, K), dW: (N, K).
inline void linear_dW(const float* dy, const float* x, float* dW, int M, int N, int K) {
    Floats of_dy = {dy, 1, size_t(N)}, of_x = {x, 1, size_t(K)};  // dy^T, x^T
    Prepared<Exact> in(of_dy, of_x, N, K, M);
    split_transposed(dy, M, in.x);
    split_transposed(x, M, in.W);
    start(product_kernel, in, Channels(), dW);
}
