// reject: gate
// Fault: one thread walks along a whole group
#include "reduce.cuh"

constexpr int WARPS = 8;  // of a block

// x: (rows, channels), mean, rstd: (rows, groups). rstd = 1 / sqrt(variance + eps)
// One thread owns every 32nd value of a group, and one warp the group. One block owns 8 groups.
__global__ void stats_two_pass_kernel(const float* x, float* mean, float* rstd, int rows,
                                      int channels, int groups, float eps) {
    int group = blockIdx.x * blockDim.x + threadIdx.x;  // counted through all rows
    if (group >= rows * groups) return;                 // the whole warp leaves
    int size = channels / groups;
    const float* values = x + group * size;  // the values of this group
    float sum = 0.0f, squares = 0.0f;
    for (int i = 0; i < size; i++) {
        sum += values[i];
    }
    float m = sum / size;
    for (int i = 0; i < size; i++) {
        float d = values[i] - m;
        squares += d * d;
    }
    float variance = squares / size;
    mean[group] = m;
    rstd[group] = rsqrtf(variance + eps);
}

void stats_two_pass(const float* x, float* mean, float* rstd, int rows, int channels, int groups,
                    float eps) {
    int blocks = (rows * groups + 32 * WARPS - 1) / (32 * WARPS);
    stats_two_pass_kernel<<<blocks, 32 * WARPS>>>(x, mean, rstd, rows, channels, groups, eps);
}
