// reject: gate
// Fault: a lane takes neighbouring values: each lane reads sectors of its own
#include "reduce.cuh"

constexpr int WARPS = 8;  // of a block

// x, out: (rows, channels), weight, bias: (channels)
// out = (x - mean) * rstd * weight + bias, with mean and rstd of x's own group in its own row
// One thread owns every 32nd value of a group, and one warp the group. One block owns 8 groups.
__global__ void groupnorm_warp_kernel(const float* x, const float* weight, const float* bias,
                                      float* out, int rows, int channels, int groups, float eps) {
    int group = blockIdx.x * WARPS + threadIdx.x / 32;  // counted through all rows
    int lane = threadIdx.x % 32;
    if (group >= rows * groups) return;  // the whole warp leaves
    int size = channels / groups;
    int first = group * size;
    int channel = first % channels;
    int each = (size + 31) / 32, begin = lane * each, end = min(begin + each, size);
    float sum = 0.0f, squares = 0.0f;
    for (int i = begin; i < end; i++) {
        sum += x[first + i];
    }
    float mean = warp_sum(sum) / size;
    for (int i = begin; i < end; i++) {
        float d = x[first + i] - mean;
        squares += d * d;
    }
    float rstd = rsqrtf(warp_sum(squares) / size + eps);
    for (int i = begin; i < end; i++) {
        float y = (x[first + i] - mean) * rstd;
        out[first + i] = y * weight[channel + i] + bias[channel + i];
    }
}

void groupnorm_warp(const float* x, const float* weight, const float* bias, float* out, int rows,
                    int channels, int groups, float eps) {
    int blocks = (rows * groups + WARPS - 1) / WARPS;
    groupnorm_warp_kernel<<<blocks, 32 * WARPS>>>(x, weight, bias, out, rows, channels, groups,
                                                  eps);
}
