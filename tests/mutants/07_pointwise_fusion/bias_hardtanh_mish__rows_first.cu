// reject: gate
// Fault: neighbouring threads walk down a column
// mish(hardtanh(y + shift)), for one element
__device__ float chain(float y, float shift) {
    float x = y + shift;
    x = x < -1.0f ? -1.0f : x > 1.0f ? 1.0f : x;
    float n = __expf(x);       // between 0.36 and 2.72: nothing overflows
    float m = n * (n + 2.0f);  // tanh(log(1 + n)) = m / (m + 2)
    return __fdividef(x * m, m + 2.0f);
}

// y, out: (rows, channels), shift: (channels). out = mish(hardtanh(y + shift))
// One thread owns one element. One block owns 256 neighbouring rows of a channel.
__global__ void bias_hardtanh_mish_kernel(const float* y, const float* shift, float* out, int rows,
                                          int channels) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    for (int col = blockIdx.y; row < rows && col < channels; col += gridDim.y) {
        size_t i = size_t(row) * channels + col;
        out[i] = chain(y[i], shift[col]);
    }
}

void bias_hardtanh_mish(const float* y, const float* shift, float* out, int rows, int channels) {
    dim3 grid((rows + 255) / 256, channels < 65535 ? channels : 65535);
    bias_hardtanh_mish_kernel<<<grid, 256>>>(y, shift, out, rows, channels);
}
