// stats_two_pass: gate
// lane 0 adds up what the lanes of its warp have loaded
// says: steps of the busiest thread
constexpr int WARPS = 4;
__global__ void
    stats_two_pass_kernel(const float* x, float* mean, float* rstd, int rows, int channels,
                          int groups, float eps) {
    __shared__ float held[WARPS][1024];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int group = blockIdx.x * WARPS + warp, size = channels / groups;
    if (group >= rows * groups) return;
    const float* values = x + size_t(group) * size;
    float m = 0.0f, sum = 0.0f;
    for (int pass = 0; pass < 2; pass++) {
        sum = 0.0f;
        for (int begin = 0; begin < size; begin += 1024) {
            int count = min(1024, size - begin);
            for (int i = lane; i < count; i += 32) held[warp][i] = values[begin + i];
            __syncwarp();
            if (lane == 0)
                for (int i = 0; i < count; i += 1) {
                    float d = held[warp][i] - m;
                    sum += pass ? d * d : d;
                }
            __syncwarp();
        }
        if (pass == 0) m = sum / size;
        m = __shfl_sync(0xffffffffu, m, 0);
    }
    if (lane == 0) {
        mean[group] = m;
        rstd[group] = 1.0f / sqrtf(sum / size + eps);
    }
}
void stats_two_pass(const float* x, float* mean, float* rstd, int rows, int channels, int groups,
                    float eps) {
    int blocks = (rows * groups + WARPS - 1) / WARPS;
    stats_two_pass_kernel<<<blocks, 32 * WARPS>>>(x, mean, rstd, rows, channels, groups, eps);
}
