// reject: wrong values
// Wrong: every group gets the mean of the first

// fault: statistics over the batch, line 12 or 13 or 21
constexpr int THREADS = 128;

// x: (rows, channels), mean: (rows, groups). The mean of each group of channels of each row.
// One thread owns every 128th element of what it sums. One block owns one element of mean.
__global__ void group_mean_kernel(const float* x, float* mean, int rows, int channels, int groups) {
    __shared__ float sums[THREADS];
    int group = blockIdx.x, row = blockIdx.y, t = threadIdx.x;
    int size = channels / groups;
    float sum = 0.0f;
    for (int i = t; i < size; i += THREADS) {
        sum += x[row * channels + i];
    }
    sums[t] = sum;
    __syncthreads();  // all sums are there before the first step reads them
    for (int step = THREADS / 2; step > 0; step /= 2) {
        if (t < step) sums[t] += sums[t + step];
        __syncthreads();  // this step is complete before the next one reads what it wrote
    }
    if (t == 0) mean[row * groups + group] = sums[0] / size;
}

void group_mean(const float* x, float* mean, int rows, int channels, int groups) {
    group_mean_kernel<<<dim3(groups, rows), THREADS>>>(x, mean, rows, channels, groups);
}
