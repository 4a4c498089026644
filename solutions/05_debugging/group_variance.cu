// BEGIN SOLUTION
// fault: cancellation, line 13 or 20
// STARTER: // fault: ?
// END SOLUTION

// x: (rows, channels), variance: (rows, groups). The variance of each group of channels of a row.
// One thread owns every 32nd element of a group. One block, of one warp, owns one group of a row.
__global__ void group_variance_kernel(const float* x, float* variance, int channels, int groups) {
    int group = blockIdx.x, row = blockIdx.y, lane = threadIdx.x;
    int size = channels / groups;
    const float* own = x + row * channels + group * size;  // the group's first element
    float sum = 0.0f, squares = 0.0f;
    // BEGIN SOLUTION
    for (int i = lane; i < size; i += 32) sum += own[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
    float mean = sum / size;
    for (int i = lane; i < size; i += 32) squares += (own[i] - mean) * (own[i] - mean);
    for (int step = 16; step > 0; step /= 2) squares += __shfl_xor_sync(0xffffffff, squares, step);
    if (lane == 0) variance[row * groups + group] = squares / size;
    // STARTER: for (int i = lane; i < size; i += 32) {
    // STARTER:     sum += own[i];
    // STARTER:     squares += own[i] * own[i];
    // STARTER: }
    // STARTER: for (int step = 16; step > 0; step /= 2) {
    // STARTER:     sum += __shfl_xor_sync(0xffffffff, sum, step);
    // STARTER:     squares += __shfl_xor_sync(0xffffffff, squares, step);
    // STARTER: }
    // STARTER: float mean = sum / size;
    // STARTER: if (lane == 0) variance[row * groups + group] = squares / size - mean * mean;
    // END SOLUTION
}

void group_variance(const float* x, float* variance, int rows, int channels, int groups) {
    group_variance_kernel<<<dim3(groups, rows), 32>>>(x, variance, channels, groups);
}
