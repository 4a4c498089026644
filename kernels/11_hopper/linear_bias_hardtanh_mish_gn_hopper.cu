#include "hopper_epilogue.cuh"

// mish(hardtanh(x + shift)), with mish(x) = x * tanh(log(1 + e^x))
__device__ float activate(float x, float shift) {
    x += shift;
    x = x < -1.0f ? -1.0f : x;  // a NaN stays one
    x = x > 1.0f ? 1.0f : x;
    float e = __expf(x), n = e * (e + 2.0f);
    return x * __fdividef(n, n + 2.0f);
}

// in: x (M, K), W (N, K), b, weight, bias, shift (N); out: (M, N)
// out = GroupNorm(activate(x * W^T + b, shift)), for groups of SIZE columns
// One thread owns TileConfig::BN / 2 elements of each tile, if its warpgroup multiplies: two rows
// of its warp's 16, every fourth pair of columns. One block owns many tiles.
template <class TileConfig, int SIZE>
__global__ void __launch_bounds__(TileConfig::THREADS, 1)
    linear_bias_hardtanh_mish_gn_kernel(const __grid_constant__ Operands in, float* out) {
    extern __shared__ __align__(1024) char memory[];
    Ring<TileConfig> ring(memory);
    int group = threadIdx.x / 128;
    if (group >= CONSUMERS) return serve(ring, memory, in);
    more_registers<TileConfig::REGISTERS>();
    for (Tiles<TileConfig::BN> tile(in.M, in.N); tile.more(); tile.next()) {
        Patch patch(tile.row() + 64 * group, tile.col());
        float sums[TileConfig::BN / 2];
        multiply(sums, ring, in, patch);
        auto& of = ring.columns();
#pragma unroll
        for (int first = 0; first < TileConfig::BN / 2; first += SIZE / 2) {  // group by group
            if (patch.col(first) >= in.N) break;
            auto& y = group_of<SIZE>(sums, first);
            // your code here
            store(out, in.M, in.N, patch.from(first), y);  // while others still compute
        }
        ring.release_columns();
    }
}

void linear_bias_hardtanh_mish_gn_hopper(const float* x, const float* W, const float* b,
                                         const float* weight, const float* bias, const float* shift,
                                         float* out, int M, int N, int K, int groups, int terms) {
    auto launch = [=](auto way, auto size) {
        auto kernel = linear_bias_hardtanh_mish_gn_kernel<decltype(way), decltype(size)::value>;
        start(kernel, Prepared<decltype(way)>(x, W, M, N, K), Channels{b, weight, bias, shift},
              out);
    };
    if (choose(terms, N / groups, launch)) return;
    linear_bias(x, W, b, out, M, N, K, terms);
    groupnorm_any_size<activate, identity>(out, weight, bias, shift, out, M, N, groups, EPS);
}
