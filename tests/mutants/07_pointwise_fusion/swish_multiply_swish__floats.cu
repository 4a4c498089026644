// reject: gate
// Fault: one float at a time: four times the requests
// swish(swish(y) * scale), for one element
__device__ float chain(float y, float scale) {
    float x = __fdividef(y, 1.0f + __expf(-y)) * scale;
    return __fdividef(x, 1.0f + __expf(-x));
}

// y, out: (rows, channels), scale: (channels). out = swish(swish(y) * scale)
// One thread owns one element. One block owns 256 neighbouring channels of a row.
__global__ void swish_multiply_swish_kernel(const float* y, const float* scale, float* out,
                                            int rows, int channels) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    for (int row = blockIdx.y; row < rows && col < channels; row += gridDim.y) {
        size_t i = size_t(row) * channels + col;
        out[i] = chain(y[i], scale[col]);
    }
}

void swish_multiply_swish(const float* y, const float* scale, float* out, int rows, int channels) {
    dim3 grid((channels + 255) / 256, rows < 65535 ? rows : 65535);
    swish_multiply_swish_kernel<<<grid, 256>>>(y, scale, out, rows, channels);
}
