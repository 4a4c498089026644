#include "linear_groups.cuh"

constexpr int ROWS = 8;                // of x, for each block that spreads their minima
constexpr int SPREADERS = 1024;        // its threads
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

// x: (M, K), W: (N, K), b, weight, bias: (N), keys: (M), with the largest key in each place.
// keys[m] = the smallest of row m of GroupNorm(x * W^T + b)
// One thread owns TM x TN elements of the product, in patches of 4 x 4. One block owns a tile of
// it: BM rows, and as many whole groups of `size` channels as fit into BN.
__global__ void __launch_bounds__(THREADS, 2)
    row_min_kernel(const float* x, const float* W, const float* b, const float* weight,
                   const float* bias, unsigned* keys, int M, int N, int K, int size) {
    Tile tile(M, N, size);
    alignas(16) float sums[TM][TN] = {}, y[TN], add[TN], w[TN], c[TN];
    multiply(sums, tile, x, W, K);
    // BEGIN SOLUTION
    read_columns(add, b, tile);
    read_columns(w, weight, tile);
    read_columns(c, bias, tile);
#pragma unroll 1
    for (int i = 0; i < TM; i++) {
        next_row(y, sums);
        for (int j = 0; j < TN; j++) y[j] += add[j];
        normalise(y, tile, size);
        unsigned least = FULL;
        for (int j = 0; j < TN; j++) {
            if (tile.owns(i, j)) least = min(least, to_key(y[j] * w[j] + c[j]));
        }
        for (int step = 2; step < 2 * LANES_N; step *= 2) {  // over the lanes of this row
            least = min(least, __shfl_xor_sync(FULL, least, step));
        }
        if (tile.left % WN == 0 && tile.row(i) < M) atomicMin(&keys[tile.row(i)], least);
    }
    // END SOLUTION
}

// out: (N, M), of which the first row holds the keys; shift: (N). out[n][m] = minimum[m] + shift[n]
// One thread owns every 128th element of a column of out. One block owns ROWS columns of out, keys
// and all: so nobody overwrites a key that another block still needs.
__global__ void spread_kernel(const float* shift, float* out, int M, int N) {
    __shared__ float least[ROWS];
    int m = blockIdx.x * ROWS + threadIdx.x % ROWS;
    if (threadIdx.x < ROWS && m < M) least[threadIdx.x] = from_key(__float_as_uint(out[m]));
    __syncthreads();  // all keys are read before anyone overwrites them
    if (m >= M) return;
    for (int n = threadIdx.x / ROWS; n < N; n += SPREADERS / ROWS) {
        out[n * M + m] = least[threadIdx.x % ROWS] + shift[n];
    }
}

void linear_gn_min_bias(const float* x, const float* W, const float* b, const float* weight,
                        const float* bias, const float* shift, float* out, int M, int N, int K,
                        int groups) {
    int size = N / groups;
    unsigned* keys = reinterpret_cast<unsigned*>(out);  // in the first row of out, for now
    cudaMemset(keys, 0xff, M * sizeof(unsigned));
    row_min_kernel<<<tiles(M, N, size), THREADS>>>(x, W, b, weight, bias, keys, M, N, K, size);
    spread_kernel<<<(M + ROWS - 1) / ROWS, SPREADERS>>>(shift, out, M, N);
}
