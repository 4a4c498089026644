// reject: wrong values
// Fault: a lane steps over the values of seven warps
#include "reduce.cuh"

constexpr int WARPS = 8;  // of a block

// x: (rows, channels), mean, rstd: (rows, groups). rstd = 1 / sqrt(variance + eps)
// One thread owns every 32nd value of a group, and one warp the group. One block owns 8 groups.
__global__ void stats_two_pass_kernel(const float* x, float* mean, float* rstd, int rows,
                                      int channels, int groups, float eps) {
    int group = blockIdx.x * WARPS + threadIdx.x / 32;  // counted through all rows
    int lane = threadIdx.x % 32;
    if (group >= rows * groups) return;  // the whole warp leaves
    int size = channels / groups;
    const float* values = x + group * size;  // the values of this group
    float sum = 0.0f, squares = 0.0f;
    for (int i = lane; i < size; i += blockDim.x) {
        sum += values[i];
    }
    float m = warp_sum(sum) / size;
    for (int i = lane; i < size; i += blockDim.x) {
        float d = values[i] - m;
        squares += d * d;
    }
    float variance = warp_sum(squares) / size;
    if (lane == 0) {
        mean[group] = m;
        rstd[group] = rsqrtf(variance + eps);
    }
}

void stats_two_pass(const float* x, float* mean, float* rstd, int rows, int channels, int groups,
                    float eps) {
    int blocks = (rows * groups + WARPS - 1) / WARPS;
    stats_two_pass_kernel<<<blocks, 32 * WARPS>>>(x, mean, rstd, rows, channels, groups, eps);
}
