constexpr int WARPS = 8;  // of a block

struct Stats {
    float count, mean, squares;  // squares: the sum of (value - mean)^2
};

// The statistics of the values of `a` and those of `b` together. Either may have none.
__device__ Stats merge(Stats a, Stats b) {
    // BEGIN SOLUTION
    float count = a.count + b.count;
    if (count == 0.0f) return a;
    float d = b.mean - a.mean, share = b.count / count;
    return {count, a.mean + d * share, a.squares + b.squares + d * d * a.count * share};
    // STARTER: // your code here
    // STARTER: return a;
    // END SOLUTION
}

// x: (rows, channels), mean, rstd = 1 / sqrt(variance + eps): (rows, groups). One block owns 8.
// One thread owns every 32nd value. Changed from `stats_two_pass`: 1 pass; rows * channels floats.
__global__ void stats_welford_kernel(const float* x, float* mean, float* rstd, int rows,
                                     int channels, int groups, float eps) {
    int group = blockIdx.x * WARPS + threadIdx.x / 32;  // counted through all rows
    int lane = threadIdx.x % 32;
    if (group >= rows * groups) return;  // the whole warp leaves
    int size = channels / groups;
    const float* values = x + group * size;  // the values of this group
    Stats stats = {0.0f, 0.0f, 0.0f};        // of the values that this lane has seen
    // BEGIN SOLUTION
    for (int i = lane; i < size; i += 32) {
        float d = values[i] - stats.mean;
        stats.count += 1.0f;
        stats.mean += d / stats.count;
        stats.squares += d * (values[i] - stats.mean);
    }
    for (int step = 16; step > 0; step /= 2) {
        Stats other;
        other.count = __shfl_xor_sync(0xffffffffu, stats.count, step);
        other.mean = __shfl_xor_sync(0xffffffffu, stats.mean, step);
        other.squares = __shfl_xor_sync(0xffffffffu, stats.squares, step);
        stats = merge(stats, other);
    }
    // END SOLUTION
    if (lane == 0) {
        mean[group] = stats.mean;
        rstd[group] = rsqrtf(stats.squares / size + eps);
    }
}

void stats_welford(const float* x, float* mean, float* rstd, int rows, int channels, int groups,
                   float eps) {
    int blocks = (rows * groups + WARPS - 1) / WARPS;
    stats_welford_kernel<<<blocks, 32 * WARPS>>>(x, mean, rstd, rows, channels, groups, eps);
}
