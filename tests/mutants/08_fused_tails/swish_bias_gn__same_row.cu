// reject: wrong values
// Fault: every row gets the first one's values
#include "quads.cuh"
#include "groups.cuh"

constexpr float EPS = 1e-5f;
constexpr int THREADS = 128;
constexpr int ROWS = 4;  // for each thread

// swish(y) + shift
__device__ float activate(float y, float shift) { return y / (1.0f + expf(-y)) + shift; }

// y, out: (rows, channels), weight, bias, shift: (channels), for groups of 4 * LANES channels
// out = GroupNorm(swish(y) + shift)
// One thread owns a quad of channels in ROWS rows, LANES neighbouring lanes a group of each.
// One block owns 128 quads, side by side, in ROWS rows.
template <int LANES>
__global__ void swish_bias_gn_kernel(const float* y, const float* weight, const float* bias,
                                     const float* shift, float* out, int rows, int channels) {
    int thread = blockIdx.x * THREADS + threadIdx.x, quads = channels / 4;  // quads of a row
    int channel = thread % quads * 4, row = thread / quads * ROWS;          // the first of each
    float4 w = quad(&weight[channel]), b = quad(&bias[channel]);
    float4 s = quad(&shift[channel]);
    float4 v[ROWS] = {};
    for (int r = 0; r < ROWS; r++) {
        if (row + r < rows) v[r] = quad(&y[(row + r) * channels + channel]);
    }
    for (int r = 0; r < ROWS; r++) {
        float4 x = v[0];
        x = {activate(x.x, s.x), activate(x.y, s.y), activate(x.z, s.z), activate(x.w, s.w)};
        x = normalised<LANES>(x, EPS);
        x = {x.x * w.x + b.x, x.y * w.y + b.y, x.z * w.z + b.z, x.w * w.w + b.w};
        if (row + r < rows) quad(&out[(row + r) * channels + channel]) = x;
    }
}

// The same for groups of any size.
// One thread owns every 32nd value of a group, one warp the group. One block owns 4 groups.
__global__ void any_size_kernel(const float* y, const float* weight, const float* bias,
                                const float* shift, float* out, int rows, int channels,
                                int groups) {
    int group = (blockIdx.x * THREADS + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (group >= rows * groups) return;  // the whole warp leaves
    int size = channels / groups, first = group * size, channel = first % channels;
    float sum = 0.0f, squares = 0.0f;
    for (int i = lane; i < size; i += 32) sum += activate(y[first + i], shift[channel + i]);
    float mean = warp_sum(sum) / size;
    for (int i = lane; i < size; i += 32) {
        float d = activate(y[first + i], shift[channel + i]) - mean;
        squares += d * d;
    }
    float rstd = rsqrtf(warp_sum(squares) / size + EPS);
    for (int i = lane; i < size; i += 32) {
        float x = (activate(y[first + i], shift[channel + i]) - mean) * rstd;
        out[first + i] = x * weight[channel + i] + bias[channel + i];
    }
}

template <int LANES>
void launch(const float* y, const float* weight, const float* bias, const float* shift, float* out,
            int rows, int channels) {
    int blocks = (channels / 4 * ((rows + ROWS - 1) / ROWS) + THREADS - 1) / THREADS;
    swish_bias_gn_kernel<LANES><<<blocks, THREADS>>>(y, weight, bias, shift, out, rows, channels);
}

void swish_bias_gn(const float* y, const float* weight, const float* bias, const float* shift,
                   float* out, int rows, int channels, int groups) {
    int size = channels / groups, blocks = (rows * groups * 32 + THREADS - 1) / THREADS;
    if (size == 4) return launch<1>(y, weight, bias, shift, out, rows, channels);
    if (size == 8) return launch<2>(y, weight, bias, shift, out, rows, channels);
    if (size == 16) return launch<4>(y, weight, bias, shift, out, rows, channels);
    if (size == 32) return launch<8>(y, weight, bias, shift, out, rows, channels);
    if (size == 64) return launch<16>(y, weight, bias, shift, out, rows, channels);
    if (size == 128) return launch<32>(y, weight, bias, shift, out, rows, channels);
    any_size_kernel<<<blocks, THREADS>>>(y, weight, bias, shift, out, rows, channels, groups);
}
