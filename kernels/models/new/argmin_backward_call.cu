// y: (rows, channels), weight, bias: (channels), argmin: (rows)
// argmin[r] = where the smallest of row r of GroupNorm(y) is, the first of several; a NaN is the
// smallest. One thread owns every 32nd value of a group, one warp every 8th group. One block owns a
// row.
__global__ void argmin_kernel(const float* y, const float* weight, const float* bias, int* argmin,
                              int channels, int groups) {
    __shared__ float least_of[8];
    __shared__ int at_of[8];
    const float* row = y + size_t(blockIdx.x) * channels;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, size = channels / groups;
    float least = INFINITY;
    int at = channels - 1;
    auto take = [&](float value, int where) {
        bool first = where < at && (value == least || (isnan(value) && isnan(least)));
        if (first || value < least || (isnan(value) && !isnan(least))) least = value, at = where;
    };
    for (int group = warp; group < groups; group += 8) {
        int first = group * size;
        auto [mean, rstd] = statistics(size, EPS, [=](int i) { return row[first + i]; });
        for (int c = first + lane; c < first + size; c += 32) {
            take((row[c] - mean) * rstd * weight[c] + bias[c], c);
        }
    }
    for (int step = 16; step > 0; step /= 2) {
        float value = __shfl_xor_sync(0xffffffffu, least, step);
        take(value, __shfl_xor_sync(0xffffffffu, at, step));
    }
    if (lane == 0) least_of[warp] = least, at_of[warp] = at;
    __syncthreads();  // what every warp found is there
    if (threadIdx.x > 0) return;
    for (int i = 1; i < 8; i++) take(least_of[i], at_of[i]);
    argmin[blockIdx.x] = at;
}

void start_tail_backward(const float* y, const float* weight, const float* bias,
                         const float* parameter, const float* grad_out, float* dy, float* dweight,
                         float* dbias, float* dparameter, int rows, int channels, int groups) {
    Scratch<int> argmin(rows);
    argmin_kernel<<<rows, 256>>>(y, weight, bias, argmin.data, channels, groups);
    backwards::BACKWARD(BACKWARD_READS, grad_out, BACKWARD_WRITES, rows, channels, groups);
}
