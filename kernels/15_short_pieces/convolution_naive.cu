constexpr int K = 7, HALF = K / 2;  // the window has K x K places

// x, out: (images, height, width), w: (7, 7). out[n][r][c] = the sum of w[dy][dx] * x[n][r + dy -
// 3][c + dx - 3], without what lies outside of the image
// One thread owns one element of out. One block owns 8 rows x 32 columns of an image.
__global__ void convolution_naive_kernel(const float* x, const float* w, float* out, int height,
                                         int width) {
    int row = blockIdx.y * 8 + threadIdx.y, col = blockIdx.x * 32 + threadIdx.x;
    if (row >= height || col >= width) return;
    size_t first = size_t(blockIdx.z) * height * width;
    float sum = 0.0f;
    for (int dy = 0; dy < K; dy++) {
        for (int dx = 0; dx < K; dx++) {
            int r = row + dy - HALF, c = col + dx - HALF;
            bool inside = r >= 0 && r < height && c >= 0 && c < width;
            if (inside) sum += w[dy * K + dx] * x[first + r * width + c];
        }
    }
    out[first + row * width + col] = sum;
}

void convolution_naive(const float* x, const float* w, float* out, int images, int height,
                       int width) {
    dim3 block(32, 8), grid((width + 31) / 32, (height + 7) / 8, images);
    convolution_naive_kernel<<<grid, block>>>(x, w, out, height, width);
}
