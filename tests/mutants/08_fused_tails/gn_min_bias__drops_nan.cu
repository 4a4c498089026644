// reject: wrong values
// Fault: fminf() drops the NaN of a group with an infinity
#include "quads.cuh"
#include "groups.cuh"

constexpr float EPS = 1e-5f;
constexpr int THREADS = 1024, WARPS = THREADS / 32;
constexpr int ROWS = 8;  // for each block: a whole sector of each row of out

// least: (ROWS), shift: (channels), out: (channels, rows). By the whole block:
// out[c, row0 + r] = least[r] + shift[c]
__device__ void spread(const float* least, const float* shift, float* out, int rows, int channels,
                       int row0) {
    bool whole = rows % 4 == 0 && row0 + ROWS <= rows;
    int r = threadIdx.x % 2 * 4;  // two neighbours write the 8 floats of a sector
    float4 m = quad(&least[r]);
    for (int c = threadIdx.x / 2; c < channels; c += THREADS / 2) {
        float s = shift[c];
        float4 four = {m.x + s, m.y + s, m.z + s, m.w + s};
        store4(out, channels, rows, c, row0 + r, four, whole);
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
    __shared__ float partials[ROWS][WARPS];  // the least value that each warp found
    __shared__ alignas(16) float least[ROWS];
    int row0 = blockIdx.x * ROWS, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float mine[ROWS];
    for (int r = 0; r < ROWS; r++) mine[r] = INFINITY;
    for (int c0 = 0; c0 < channels; c0 += 4 * THREADS) {
        int channel = c0 + 4 * threadIdx.x;
        bool inside = channel < channels;
        float4 w = {}, b = {}, v[ROWS] = {};
        if (inside) {
            w = quad(&weight[channel]);
            b = quad(&bias[channel]);
        }
        for (int r = 0; r < ROWS; r++) {
            if (inside && row0 + r < rows) v[r] = quad(&y[(row0 + r) * channels + channel]);
        }
        for (int r = 0; r < ROWS; r++) {
            float4 x = normalised<LANES>(v[r], EPS);
            x = {x.x * w.x + b.x, x.y * w.y + b.y, x.z * w.z + b.z, x.w * w.w + b.w};
            if (inside) mine[r] = fminf(mine[r], fminf(fminf(x.x, x.y), fminf(x.z, x.w)));
        }
    }
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
    spread(least, shift, out, rows, channels, row0);
}

// The same for groups of any size.
// One thread owns every 32nd value of a group, one warp every WARPSth group of a row. One block
// owns ROWS rows of y.
__global__ void any_size_kernel(const float* y, const float* weight, const float* bias,
                                const float* shift, float* out, int rows, int channels,
                                int groups) {
    __shared__ float partials[ROWS][WARPS];
    __shared__ alignas(16) float least[ROWS];
    int row0 = blockIdx.x * ROWS, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int size = channels / groups;
    for (int r = 0; r < ROWS; r++) {
        float mine = INFINITY;
        for (int group = warp; row0 + r < rows && group < groups; group += WARPS) {
            int channel = group * size;
            const float* x = y + (row0 + r) * channels + channel;
            float sum = 0.0f, squares = 0.0f;
            for (int i = lane; i < size; i += 32) sum += x[i];
            float mean = warp_sum(sum) / size;
            for (int i = lane; i < size; i += 32) squares += (x[i] - mean) * (x[i] - mean);
            float rstd = rsqrtf(warp_sum(squares) / size + EPS);
            for (int i = lane; i < size; i += 32) {
                float value = (x[i] - mean) * rstd * weight[channel + i] + bias[channel + i];
                mine = fminf(mine, value);
            }
        }
        mine = warp_min(mine);
        if (lane == 0) partials[r][warp] = mine;
    }
    __syncthreads();  // the values of every warp are there before they are reduced
    if (warp < ROWS) {
        float value = warp_min(partials[warp][lane]);
        if (lane == 0) least[warp] = value;
    }
    __syncthreads();  // the minima of all rows are there before anyone adds to them
    spread(least, shift, out, rows, channels, row0);
}

template <int LANES>
void launch(const float* y, const float* weight, const float* bias, const float* shift, float* out,
            int rows, int channels) {
    int blocks = (rows + ROWS - 1) / ROWS;
    gn_min_bias_kernel<LANES><<<blocks, THREADS>>>(y, weight, bias, shift, out, rows, channels);
}

void gn_min_bias(const float* y, const float* weight, const float* bias, const float* shift,
                 float* out, int rows, int channels, int groups) {
    int size = channels / groups, blocks = (rows + ROWS - 1) / ROWS;
    if (size == 4) return launch<1>(y, weight, bias, shift, out, rows, channels);
    if (size == 8) return launch<2>(y, weight, bias, shift, out, rows, channels);
    if (size == 16) return launch<4>(y, weight, bias, shift, out, rows, channels);
    if (size == 32) return launch<8>(y, weight, bias, shift, out, rows, channels);
    if (size == 64) return launch<16>(y, weight, bias, shift, out, rows, channels);
    if (size == 128) return launch<32>(y, weight, bias, shift, out, rows, channels);
    any_size_kernel<<<blocks, THREADS>>>(y, weight, bias, shift, out, rows, channels, groups);
}
