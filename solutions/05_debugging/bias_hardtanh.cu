// BEGIN SOLUTION
// fault: wrong clamp range, line 10
// STARTER: // fault: ?
// END SOLUTION

// x: (rows, channels), bias: (channels), out: (rows, channels). out = hardtanh(x + bias)
// One thread owns one element of out.
__global__ void bias_hardtanh_kernel(const float* x, const float* bias, float* out, int channels) {
    int row = blockIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= channels) return;
    float v = x[row * channels + c] + bias[c];
    // BEGIN SOLUTION
    out[row * channels + c] = fminf(fmaxf(v, -1.0f), 1.0f);
    // STARTER: out[row * channels + c] = fminf(fmaxf(v, 0.0f), 20.0f);
    // END SOLUTION
}

void bias_hardtanh(const float* x, const float* bias, float* out, int rows, int channels) {
    dim3 grid((channels + 127) / 128, rows);
    bias_hardtanh_kernel<<<grid, 128>>>(x, bias, out, channels);
}
