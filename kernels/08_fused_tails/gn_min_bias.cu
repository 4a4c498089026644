#include "tails.cuh"

constexpr int THREADS = 1024, WARPS = THREADS / 32;
constexpr int ROWS = 8;  // for each block: a whole sector of each row of out

// Registers -> shared memory. mine: (ROWS), the least that this thread found in each row.
// least: (ROWS), the least of the whole block. All threads of the block must call it.
__device__ void block_min(const float (&mine)[ROWS], float* least) {
    __shared__ float partials[ROWS][WARPS];  // the least value that each warp found
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int r = 0; r < ROWS; r++) {
        float value = warp_min(mine[r]);
        if (lane == 0) partials[r][warp] = value;
    }
    __syncthreads();  // the values of every warp are there before they are reduced
    if (warp < ROWS) {
        float value = warp_min(partials[warp][lane]);
        if (lane == 0) least[warp] = value;
    }
    __syncthreads();  // the minima of all rows are there before anyone adds to them
}

// Shared -> global memory. least: (ROWS), shift: (channels), out: (channels, rows). By the whole
// block: out[c, row0 + r] = least[r] + shift[c]
__device__ void spread(const float* least, const float* shift, float* out, int rows, int channels,
                       int row0) {
    bool whole = rows % 4 == 0 && row0 + ROWS <= rows;
    int r = threadIdx.x % 2 * 4;  // two neighbours write the 8 floats of a sector
    float4 m = quad(&least[r]);
    for (int c = threadIdx.x / 2; c < channels; c += THREADS / 2) {
        float s = shift[c];
        float4 shifted = {m.x + s, m.y + s, m.z + s, m.w + s};
        store4(out, channels, rows, c, row0 + r, shifted, whole);
    }
}

// y: (rows, channels), weight, bias, shift: (channels), out: (channels, rows)
// out[c, b] = min over row b of GroupNorm(y) + shift[c]
// One thread owns quads of channels in ROWS rows, LANES neighbouring lanes a group of 4 * LANES
// channels. One block owns ROWS rows of y, and so ROWS columns of out.
template <int LANES>
__global__ void __launch_bounds__(THREADS)
    gn_min_bias_kernel(const float* y, const float* weight, const float* bias, const float* shift,
                       float* out, int rows, int channels) {
    __shared__ alignas(16) float least[ROWS];
    int row0 = blockIdx.x * ROWS;
    float mine[ROWS];
    for (int r = 0; r < ROWS; r++) mine[r] = INFINITY;
    // your code here
    block_min(mine, least);
    spread(least, shift, out, rows, channels, row0);
}

void gn_min_bias(const float* y, const float* weight, const float* bias, const float* shift,
                 float* out, int rows, int channels, int groups) {
    int blocks = (rows + ROWS - 1) / ROWS;
    auto launch = [=](auto lanes) {
        gn_min_bias_kernel<lanes()>
            <<<blocks, THREADS>>>(y, weight, bias, shift, out, rows, channels);
    };
    if (dispatch(channels / groups, launch)) return;
    min_of_any_size_kernel<THREADS, ROWS, block_min, spread>
        <<<blocks, THREADS>>>(y, weight, bias, shift, out, rows, channels, groups);
}
