// x * W^T for a tile, in the registers of two warpgroups. From exercises 11.4 and 11.5.
#pragma once

#include <type_traits>

#include "hopper_tile.cuh"

constexpr int PROMOTE = 4;  // rounds of BK, after which sums of halves go into totals: 256 of K

// y = x * W^T, of this thread's part of a tile. All threads of both consumers must call it.
template <int SUMS>
__device__ inline void multiply(float (&y)[SUMS], Ring<Tf32>& ring, const Operands& in,
                                const Patch&) {
    int top = threadIdx.x / 128 * 64;
#pragma unroll
    for (int i = 0; i < SUMS; i++) y[i] = 0.0f;
    for (int k0 = 0; k0 < in.K; k0 += Tf32::BK) {
        auto& tiles = ring.filled();
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < Tf32::BK; k += 8) {
            wgmma_tf32(y, make_descriptor(&tiles.x[0][top][k]), make_descriptor(&tiles.W[0][0][k]),
                       1);
        }
        wgmma_commit();
        wgmma_wait<1>();
        ring.release_before();
    }
    wgmma_wait<0>();
    ring.release();
}

// in.linear = y + b: what a backward needs of the forward. linear begins at a multiple of 8 bytes.
template <int SUMS>
__device__ inline void keep(const float (&y)[SUMS], const float* b, const Operands& in,
                            const Patch& patch) {
    bool pairs = in.N % 2 == 0;  // may be written at once
#pragma unroll
    for (int first = 0; first < 4; first += 2) {  // one row, then the other
        if (patch.row(first) >= in.M) continue;
        float* row = in.linear + size_t(patch.row(first)) * in.N + patch.col0;
#pragma unroll
        for (int i = first; i < SUMS; i += 4) {
            int at = patch.at(i);
            if (patch.col0 + at >= in.N) break;
            if (pairs) {
                __stcs(reinterpret_cast<float2*>(row + at), {y[i] + b[at], y[i + 1] + b[at + 1]});
            } else {
                row[at] = y[i] + b[at];
                if (patch.col0 + at + 1 < in.N) row[at + 1] = y[i + 1] + b[at + 1];
            }
        }
    }
}

// The same as exact as fp32: of halves, high and low, promoted every 256 of K, and scaled.
template <class TileConfig, int SUMS>
__device__ inline void multiply(float (&y)[SUMS], Ring<TileConfig>& ring, const Operands& in,
                                const Patch& patch) {
    int top = threadIdx.x / 128 * 64;
    float2 x_scale = scales_of_rows(in, patch);
#pragma unroll
    for (int i = 0; i < SUMS; i++) y[i] = 0.0f;
    for (int k0 = 0; k0 < in.K; k0 += PROMOTE * Exact::BK) {
        float sums[SUMS];
        for (int k = k0; k < min(in.K, k0 + PROMOTE * Exact::BK); k += Exact::BK) {
            auto& tiles = ring.filled();
            wgmma_fence();
#pragma unroll
            for (int i = 0; i < Exact::BK; i += 16) {
                auto x_high = make_descriptor(&tiles.x[0][top][i]),
                     x_low = make_descriptor(&tiles.x[1][top][i]);
                auto W_high = make_descriptor(&tiles.W[0][0][i]),
                     W_low = make_descriptor(&tiles.W[1][0][i]);
                wgmma_f16(sums, x_high, W_low, k > k0 || i > 0);  // the first begins anew
                wgmma_f16(sums, x_low, W_high, 1);
                wgmma_f16(sums, x_high, W_high, 1);
            }
            wgmma_commit();
            wgmma_wait<1>();
            ring.release_before();
        }
        wgmma_wait<0>();
        ring.release();
#pragma unroll
        for (int i = 0; i < SUMS; i++) y[i] += sums[i];
    }
    scale(y, x_scale, ring.columns().W_scale, in, patch);
    if constexpr (TileConfig::KEEPS) keep(y, ring.columns().b, in, patch);
}

// --- Host

// Calls launch(way, size) for groups that an epilogue can normalise in registers, of 16, 32 or 64
// columns: with Tf32 for one product, else Beside, and the size as a constant. Returns whether it
// did.
template <class Launch>
bool choose(int terms, int size, Launch launch) {
    auto with = [=](auto constant) {
        terms == 1 ? launch(Tf32(), constant) : launch(Beside(), constant);
        return true;
    };
    if (size == 16) return with(std::integral_constant<int, 16>());
    if (size == 32) return with(std::integral_constant<int, 32>());
    if (size == 64) return with(std::integral_constant<int, 64>());
    return false;
}
