// reject: gate
// Fault: neighbouring threads walk down a column
// swish(swish(y) * scale), for one element
__device__ float chain(float y, float scale) {
    float x = __fdividef(y, 1.0f + __expf(-y)) * scale;
    return __fdividef(x, 1.0f + __expf(-x));
}

// y, out: (rows, channels), scale: (channels). out = swish(swish(y) * scale)
// One thread owns one element. One block owns 256 neighbouring rows of a channel.
__global__ void swish_multiply_swish_kernel(const float* y, const float* scale, float* out,
                                            int rows, int channels) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    for (int col = blockIdx.y; row < rows && col < channels; col += gridDim.y) {
        size_t i = size_t(row) * channels + col;
        out[i] = chain(y[i], scale[col]);
    }
}

void swish_multiply_swish(const float* y, const float* scale, float* out, int rows, int channels) {
    dim3 grid((rows + 255) / 256, channels < 65535 ? channels : 65535);
    swish_multiply_swish_kernel<<<grid, 256>>>(y, scale, out, rows, channels);
}
