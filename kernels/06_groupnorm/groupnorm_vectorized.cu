#include "quads.cuh"
#include "reduce.cuh"

constexpr int THREADS = 256;
constexpr int ROWS = 4;  // for each thread

// x, out: (rows, channels), weight, bias: (channels), channels a multiple of 4 * LANES
// out = (x - mean) * rstd * weight + bias, with mean and rstd of x's own group in its own row
// One thread owns a quad of channels in ROWS rows, LANES neighbouring lanes a group of 4 * LANES
// channels. One block owns 256 quads, side by side.
template <int LANES>
__global__ void __launch_bounds__(THREADS)
    groupnorm_vectorized_kernel(const float* x, const float* weight, const float* bias, float* out,
                                int rows, int channels, float eps) {
    int thread = blockIdx.x * THREADS + threadIdx.x, quads = channels / 4;  // quads of a row
    int channel = thread % quads * 4, row = thread / quads * ROWS;          // the first of each
    float4 v[ROWS] = {}, w = quad(&weight[channel]), b = quad(&bias[channel]);
    for (int r = 0; r < ROWS; r++) {
        if (row + r < rows) v[r] = quad(&x[(row + r) * channels + channel]);
    }
    for (int r = 0; r < ROWS; r++) {
        float4 y = v[r];
        float mean = warp_sum<LANES>(y.x + y.y + y.z + y.w) / (4 * LANES);
        y = {y.x - mean, y.y - mean, y.z - mean, y.w - mean};
        float squares = warp_sum<LANES>(y.x * y.x + y.y * y.y + y.z * y.z + y.w * y.w);
        float rstd = rsqrtf(squares / (4 * LANES) + eps);
        y = {y.x * rstd * w.x + b.x, y.y * rstd * w.y + b.y, y.z * rstd * w.z + b.z,
             y.w * rstd * w.w + b.w};
        if (row + r < rows) quad(&out[(row + r) * channels + channel]) = y;
    }
}

// The same for groups of any size: one warp owns a group, as in groupnorm_warp.
// One thread owns every 32nd value of a group. One block owns 8 groups.
__global__ void any_size_kernel(const float* x, const float* weight, const float* bias, float* out,
                                int rows, int channels, int groups, float eps) {
    int group = (blockIdx.x * THREADS + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (group >= rows * groups) return;
    int size = channels / groups, first = group * size, channel = first % channels;
    float sum = 0.0f, squares = 0.0f;
    for (int i = lane; i < size; i += 32) sum += x[first + i];
    float mean = warp_sum(sum) / size;
    for (int i = lane; i < size; i += 32) squares += (x[first + i] - mean) * (x[first + i] - mean);
    float rstd = rsqrtf(warp_sum(squares) / size + eps);
    for (int i = lane; i < size; i += 32) {
        float y = (x[first + i] - mean) * rstd;
        out[first + i] = y * weight[channel + i] + bias[channel + i];
    }
}

template <int LANES>
void launch(const float* x, const float* weight, const float* bias, float* out, int rows,
            int channels, float eps) {
    int threads = channels / 4 * ((rows + ROWS - 1) / ROWS);
    int blocks = (threads + THREADS - 1) / THREADS;
    groupnorm_vectorized_kernel<LANES>
        <<<blocks, THREADS>>>(x, weight, bias, out, rows, channels, eps);
}

void groupnorm_vectorized(const float* x, const float* weight, const float* bias, float* out,
                          int rows, int channels, int groups, float eps) {
    int size = channels / groups, blocks = (rows * groups * 32 + THREADS - 1) / THREADS;
    if (size == 4) return launch<1>(x, weight, bias, out, rows, channels, eps);
    if (size == 8) return launch<2>(x, weight, bias, out, rows, channels, eps);
    if (size == 16) return launch<4>(x, weight, bias, out, rows, channels, eps);
    if (size == 32) return launch<8>(x, weight, bias, out, rows, channels, eps);
    if (size == 64) return launch<16>(x, weight, bias, out, rows, channels, eps);
    if (size == 128) return launch<32>(x, weight, bias, out, rows, channels, eps);
    any_size_kernel<<<blocks, THREADS>>>(x, weight, bias, out, rows, channels, groups, eps);
}
