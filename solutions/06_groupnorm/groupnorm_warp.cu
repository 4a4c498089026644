#include "reduce.cuh"

constexpr int WARPS = 8;  // of a block

// x, out: (rows, channels), weight, bias: (channels). out = (x - mean) * rstd * weight + bias, by
// row and group. Changed from `groupnorm_block`: a warp a group; loads 5 * rows * channels floats.
// One thread owns every 32nd value of a group, and one warp the group. One block owns 8 groups.
__global__ void groupnorm_warp_kernel(const float* x, const float* weight, const float* bias,
                                      float* out, int rows, int channels, int groups, float eps) {
    // BEGIN SOLUTION
    int group = blockIdx.x * WARPS + threadIdx.x / 32;  // counted through all rows
    int lane = threadIdx.x % 32;
    if (group >= rows * groups) return;  // the whole warp leaves
    int size = channels / groups;
    int first = group * size;
    int channel = first % channels;
    float sum = 0.0f, squares = 0.0f;
    for (int i = lane; i < size; i += 32) {
        sum += x[first + i];
    }
    float mean = warp_sum(sum) / size;
    for (int i = lane; i < size; i += 32) {
        float d = x[first + i] - mean;
        squares += d * d;
    }
    float rstd = rsqrtf(warp_sum(squares) / size + eps);
    for (int i = lane; i < size; i += 32) {
        float y = (x[first + i] - mean) * rstd;
        out[first + i] = y * weight[channel + i] + bias[channel + i];
    }
    // END SOLUTION
}

void groupnorm_warp(const float* x, const float* weight, const float* bias, float* out, int rows,
                    int channels, int groups, float eps) {
    // BEGIN SOLUTION
    int blocks = (rows * groups + WARPS - 1) / WARPS;
    groupnorm_warp_kernel<<<blocks, 32 * WARPS>>>(x, weight, bias, out, rows, channels, groups,
                                                  eps);
    // END SOLUTION
}
