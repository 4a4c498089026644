// reject: wrong values
// Wrong: the larger of 1 and what is below -1

// fault: wrong clamp range, line 10

// x: (rows, channels), bias: (channels), out: (rows, channels). out = hardtanh(x + bias)
// One thread owns one element of out.
__global__ void bias_hardtanh_kernel(const float* x, const float* bias, float* out, int channels) {
    int row = blockIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= channels) return;
    float v = x[row * channels + c] + bias[c];
    out[row * channels + c] = fmaxf(fminf(v, -1.0f), 1.0f);
}

void bias_hardtanh(const float* x, const float* bias, float* out, int rows, int channels) {
    dim3 grid((channels + 127) / 128, rows);
    bias_hardtanh_kernel<<<grid, 128>>>(x, bias, out, channels);
}
