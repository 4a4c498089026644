// x, out: (rows, channels), weight, bias: (channels). Each row is cut into `groups` groups of
// neighbouring channels. out = (x - mean) * rstd * weight + bias, mean and rstd of x's own group
// One thread owns one group of one row. One block owns 128 of them.
__global__ void groupnorm_serial_kernel(const float* x, const float* weight, const float* bias,
                                        float* out, int rows, int channels, int groups, float eps) {
    int group = blockIdx.x * blockDim.x + threadIdx.x;  // counted through all rows
    if (group >= rows * groups) return;
    int size = channels / groups;
    int first = group * size;  // the first value of the group: row * channels + its channel
    int channel = first % channels;
    float sum = 0.0f, squares = 0.0f;
    for (int i = 0; i < size; i++) {
        sum += x[first + i];
    }
    float mean = sum / size;
    for (int i = 0; i < size; i++) {
        float d = x[first + i] - mean;
        squares += d * d;
    }
    float rstd = rsqrtf(squares / size + eps);
    for (int i = 0; i < size; i++) {
        float y = (x[first + i] - mean) * rstd;
        out[first + i] = y * weight[channel + i] + bias[channel + i];
    }
}

void groupnorm_serial(const float* x, const float* weight, const float* bias, float* out, int rows,
                      int channels, int groups, float eps) {
    int threads = 128;
    int blocks = (rows * groups + threads - 1) / threads;
    groupnorm_serial_kernel<<<blocks, threads>>>(x, weight, bias, out, rows, channels, groups, eps);
}
