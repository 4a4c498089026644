// What follows a product of warpgroups in its registers: groups of channels. From exercise 11.7.
#pragma once

#include "eps.cuh"
#include "group_sizes.cuh"
#include "hopper_beside.cuh"
#include "hopper_product.cuh"

// The sum over the four lanes that own the same row. All 32 lanes of the warp must call it.
__device__ inline float sum_along_row(float value) {
    value += __shfl_xor_sync(0xffffffffu, value, 1);
    return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

// GroupNorm of one group, without weight and bias: of two rows, in turns of two columns, as a lane
// has them. Four lanes have the group. All 32 lanes of the warp must call it.
template <int EACH>
__device__ inline void normalise(float (&y)[EACH]) {
    constexpr int SIZE = 2 * EACH;  // columns: half of EACH in each of four lanes
#pragma unroll
    for (int first = 0; first < 4; first += 2) {  // one row, then the other
        float sum = 0.0f, squares = 0.0f;
#pragma unroll
        for (int i = first; i < EACH; i += 4) sum += y[i] + y[i + 1];
        float mean = sum_along_row(sum) / SIZE;
#pragma unroll
        for (int i = first; i < EACH; i += 4) {
            y[i] -= mean;
            y[i + 1] -= mean;
            squares += y[i] * y[i] + y[i + 1] * y[i + 1];
        }
        float rstd = rsqrtf(sum_along_row(squares) / SIZE + EPS);
#pragma unroll
        for (int i = first; i < EACH; i += 4) {
            y[i] *= rstd;
            y[i + 1] *= rstd;
        }
    }
}

// The elements of a group, of both rows, among those of a thread.
template <int SIZE, int SUMS>
__device__ inline float (&group_of(float (&sums)[SUMS], int first))
    [SIZE / 2] { return reinterpret_cast<float (&)[SIZE / 2]>(sums[first]); }

// --- Groups of other sizes: the linear layer alone

// in: x (M, K), W (N, K), b (N); out: (M, N). out = x * W^T + b
// One thread owns TileConfig::BN / 2 elements of each tile. One block owns many tiles.
template <class TileConfig>
__global__ void __launch_bounds__(TileConfig::THREADS, 1)
    linear_bias_kernel(const __grid_constant__ Operands in, float* out) {
    extern __shared__ __align__(1024) char memory[];
    Ring<TileConfig> ring(memory);
    int group = threadIdx.x / 128;
    if (group >= CONSUMERS) return serve(ring, memory, in);
    more_registers<TileConfig::REGISTERS>();
    for (Tiles<TileConfig::BN> tile(in.M, in.N); tile.more(); tile.next()) {
        Patch patch(tile.row() + 64 * group, tile.col());
        float y[TileConfig::BN / 2];
        multiply(y, ring, in, patch);
        auto& of = ring.columns();
#pragma unroll
        for (int i = 0; i < TileConfig::BN / 2; i++)
            y[i] += patch.col(i) < in.N ? of.b[patch.at(i)] : 0.0f;
        store(out, in.M, in.N, patch, y);
        ring.release_columns();
    }
}

// The launcher of that. terms: 1, of floats as they lie, or 3, as exact as fp32
inline void linear_bias(const float* x, const float* W, const float* b, float* out, int M, int N,
                        int K, int terms) {
    Channels of = {b};
    if (terms == 1) start(linear_bias_kernel<Tf32>, Prepared<Tf32>(x, W, M, N, K), of, out);
    else start(linear_bias_kernel<Beside>, Prepared<Beside>(x, W, M, N, K), of, out);
}
