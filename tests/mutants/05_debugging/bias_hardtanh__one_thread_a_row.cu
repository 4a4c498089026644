// reject: gate
// Wrong: right, but one thread goes over the whole row

// fault: wrong clamp range, line 10

// x: (rows, channels), bias: (channels), out: (rows, channels). out = hardtanh(x + bias)
// One thread owns one element of out.
__global__ void bias_hardtanh_kernel(const float* x, const float* bias, float* out, int channels) {
    int row = blockIdx.y;
    if (blockIdx.x > 0 || threadIdx.x > 0) return;
    for (int c = 0; c < channels; c++) {
        float v = x[row * channels + c] + bias[c];
        out[row * channels + c] = fminf(fmaxf(v, -1.0f), 1.0f);
    }
}

void bias_hardtanh(const float* x, const float* bias, float* out, int rows, int channels) {
    dim3 grid((channels + 127) / 128, rows);
    bias_hardtanh_kernel<<<grid, 128>>>(x, bias, out, channels);
}
