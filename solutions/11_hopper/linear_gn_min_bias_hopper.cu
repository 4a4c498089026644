#include "hopper_epilogue.cuh"

constexpr unsigned FULL = 0xffffffff;  // all lanes; and the largest key

// Keys are integers in the order of the floats, so that atomicMin finds the smallest float. NaN has
// the smallest key of all, and so wins.
__device__ unsigned to_key(float value) {
    unsigned bits = __float_as_uint(value);
    if (isnan(value)) return 0;
    return bits >> 31 ? ~bits : bits | 0x80000000;
}
__device__ float from_key(unsigned key) {
    return __uint_as_float(key >> 31 ? key & 0x7fffffff : ~key);
}

// in: x (M, K), W (N, K), b, weight, bias (N); keys: (M), with the largest key in each place.
// keys[m] = the smallest of row m of GroupNorm(x * W^T + b), for groups of SIZE columns
// One thread owns TileConfig::BN / 2 elements of each tile, if its warpgroup multiplies: two rows
// of its warp's 16, every fourth pair of columns. One block owns many tiles.
template <class TileConfig, int SIZE>
__global__ void __launch_bounds__(TileConfig::THREADS, 1)
    row_min_kernel(const __grid_constant__ Operands in, unsigned* keys) {
    extern __shared__ __align__(1024) char memory[];
    Ring<TileConfig> ring(memory);
    int group = threadIdx.x / 128;
    if (group >= CONSUMERS) return serve(ring, memory, in);
    more_registers<TileConfig::REGISTERS>();
    for (Tiles<TileConfig::BN> tile(in.M, in.N); tile.more(); tile.next()) {
        Patch patch(tile.row() + 64 * group, tile.col());
        float sums[TileConfig::BN / 2];
        multiply(sums, ring, in, patch);
        unsigned least[2] = {FULL, FULL};  // of each row
        auto& of = ring.columns();
#pragma unroll
        for (int first = 0; first < TileConfig::BN / 2; first += SIZE / 2) {  // group by group
            if (patch.col(first) >= in.N) break;
            auto& y = group_of<SIZE>(sums, first);
#pragma unroll
            for (int i = 0; i < SIZE / 2; i++) y[i] += of.b[patch.at(first + i)];
            normalise(y);
            // BEGIN SOLUTION
#pragma unroll
            for (int i = 0; i < SIZE / 2; i++) {
                int at = patch.at(first + i);
                unsigned& mine = least[i / 2 % 2];
                mine = min(mine, to_key(y[i] * of.weight[at] + of.bias[at]));
            }
            // END SOLUTION
        }
        ring.release_columns();
        // BEGIN SOLUTION
#pragma unroll
        for (int h = 0; h < 2; h++) {
            least[h] = min(least[h], __shfl_xor_sync(FULL, least[h], 1));
            least[h] = min(least[h], __shfl_xor_sync(FULL, least[h], 2));
            int row = patch.row(2 * h);
            if (threadIdx.x % 4 == 0 && row < in.M) atomicMin(&keys[row], least[h]);
        }
        // END SOLUTION
    }
}

// y: (rows, channels), weight, bias: (channels), keys: (rows). keys[m] = the smallest of row m of
// GroupNorm(y), for groups of any size.
// One thread owns every 32nd value of a group, one warp every eighth group, one block a row.
__global__ void row_min_any_size_kernel(const float* y, const float* weight, const float* bias,
                                        unsigned* keys, int channels, int groups) {
    const float* row = y + size_t(blockIdx.x) * channels;
    float least = warp_min(least_of_lane(row, weight, bias, channels, groups, EPS));
    if (threadIdx.x % 32 == 0) atomicMin(&keys[blockIdx.x], to_key(least));
}

// keys: (M), shift: (N), out: (N, M). out[n][m] = minimum[m] + shift[n]
// One thread owns every nth element of a column of out.
__global__ void spread_kernel(const unsigned* keys, const float* shift, float* out, int M, int N) {
    int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= M) return;
    float least = from_key(keys[m]);
    for (int n = blockIdx.y; n < N; n += gridDim.y)
        __stcs(&out[size_t(n) * M + m], least + shift[n]);
}

// The launcher of keys: the same for groups of any size; y: (M, N), for where that needs it.
void find_keys(const float* x, const float* W, const Channels& of, unsigned* keys, float* y, int M,
               int N, int K, int groups, int terms) {
    auto launch = [=](auto way, auto size) {
        auto kernel = row_min_kernel<decltype(way), decltype(size)::value>;
        start(kernel, Prepared<decltype(way)>(x, W, M, N, K), of, keys);
    };
    if (choose(terms, N / groups, launch)) return;
    linear_bias(x, W, of.b, y, M, N, K, terms);
    row_min_any_size_kernel<<<M, 256>>>(y, of.weight, of.bias, keys, N, groups);
}

void linear_gn_min_bias_hopper(const float* x, const float* W, const float* b, const float* weight,
                               const float* bias, const float* shift, float* out, int M, int N,
                               int K, int groups, int terms) {
    Scratch<unsigned> keys(M);
    cudaMemsetAsync(keys.data, 0xff, M * sizeof(unsigned));
    find_keys(x, W, {b, weight, bias}, keys.data, out, M, N, K, groups, terms);
    spread_kernel<<<dim3((M + 127) / 128, min(N, 256)), 128>>>(keys.data, shift, out, M, N);
}
