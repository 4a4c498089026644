// reject: invalid mask
// Fault: threads beyond the last quad leave before the shuffles
#include "quads.cuh"
#include "reduce.cuh"

constexpr int THREADS = 256;

// x, out: (rows, channels), weight, bias: (channels), for groups of 4 * LANES channels
// out = (x - mean) * rstd * weight + bias, with mean and rstd of x's own group in its own row
// One thread owns a quad, LANES neighbouring lanes a group. One block owns 256 quads in a row.
template <int LANES>
__global__ void groupnorm_vectorized_kernel(const float* x, const float* weight, const float* bias,
                                            float* out, int rows, int channels, float eps) {
    int first = (blockIdx.x * THREADS + threadIdx.x) * 4;  // the quad, counted through all rows
    bool inside = first < rows * channels;
    if (!inside) return;
    int channel = first % channels;
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (inside) v = quad(&x[first]);
    float4 w = quad(&weight[channel]), b = quad(&bias[channel]);
    float mean = warp_sum<LANES>(v.x + v.y + v.z + v.w) / (4 * LANES);
    v = {v.x - mean, v.y - mean, v.z - mean, v.w - mean};
    float squares = warp_sum<LANES>(v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w);
    float rstd = rsqrtf(squares / (4 * LANES) + eps);
    v = {v.x * rstd * w.x + b.x, v.y * rstd * w.y + b.y, v.z * rstd * w.z + b.z,
         v.w * rstd * w.w + b.w};
    if (inside) quad(&out[first]) = v;
}

// The same for groups of any size: a warp for each group, as in groupnorm_warp.
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
    int blocks = (rows * channels / 4 + THREADS - 1) / THREADS;
    groupnorm_vectorized_kernel<LANES>
        <<<blocks, THREADS>>>(x, weight, bias, out, rows, channels, eps);
}

void groupnorm_vectorized(const float* x, const float* weight, const float* bias, float* out,
                          int rows, int channels, int groups, float eps) {
    int size = channels / groups, warps = THREADS / 32;
    if (size == 4) return launch<1>(x, weight, bias, out, rows, channels, eps);
    if (size == 8) return launch<2>(x, weight, bias, out, rows, channels, eps);
    if (size == 16) return launch<4>(x, weight, bias, out, rows, channels, eps);
    if (size == 32) return launch<8>(x, weight, bias, out, rows, channels, eps);
    if (size == 64) return launch<16>(x, weight, bias, out, rows, channels, eps);
    if (size == 128) return launch<32>(x, weight, bias, out, rows, channels, eps);
    int blocks = (rows * groups + warps - 1) / warps;  // for any_size_kernel
    any_size_kernel<<<blocks, THREADS>>>(x, weight, bias, out, rows, channels, groups, eps);
}
