// reject: wrong values
// Wrong: the bias comes after the clamp

// fault: wrong clamp range, line 10

// x: (rows, channels), bias: (channels), out: (rows, channels). out = hardtanh(x + bias)
// One thread owns one element of out.
__global__ void bias_hardtanh_kernel(const float* x, const float* bias, float* out, int channels) {
    int row = blockIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= channels) return;
    float v = x[row * channels + c];
    out[row * channels + c] = fminf(fmaxf(v, -1.0f), 1.0f) + bias[c];
}

void bias_hardtanh(const float* x, const float* bias, float* out, int rows, int channels) {
    dim3 grid((channels + 127) / 128, rows);
    bias_hardtanh_kernel<<<grid, 128>>>(x, bias, out, channels);
}
