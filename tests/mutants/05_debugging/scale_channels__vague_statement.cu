// reject: fault not named
// Wrong: mended; the statement is not of the form that is asked for

// index per group, line 13

// x, out: (rows, channels), mean, rstd: (rows, groups), weight, bias: (channels).
// One thread owns one element of out.
__global__ void scale_channels_kernel(const float* x, const float* mean, const float* rstd,
                                      const float* weight, const float* bias, float* out,
                                      int channels, int groups) {
    int row = blockIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= channels) return;
    int group = c / (channels / groups), at = row * groups + group;
    float normalised = (x[row * channels + c] - mean[at]) * rstd[at];
    out[row * channels + c] = normalised * weight[c] + bias[c];
}

void scale_channels(const float* x, const float* mean, const float* rstd, const float* weight,
                    const float* bias, float* out, int rows, int channels, int groups) {
    dim3 grid((channels + 127) / 128, rows);
    scale_channels_kernel<<<grid, 128>>>(x, mean, rstd, weight, bias, out, channels, groups);
}
