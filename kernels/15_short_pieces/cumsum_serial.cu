constexpr int THREADS = 128;

// x, out: (rows, channels). out[r][c] = x[r][0] + … + x[r][c]
// One thread owns one row. One block owns 128 rows.
__global__ void cumsum_serial_kernel(const float* x, float* out, int rows, int channels) {
    int r = blockIdx.x * THREADS + threadIdx.x;
    if (r >= rows) return;
    size_t first = size_t(r) * channels;
    float sum = 0.0f;
    for (int c = 0; c < channels; c++) {
        sum += x[first + c];
        out[first + c] = sum;
    }
}

void cumsum_serial(const float* x, float* out, int rows, int channels) {
    cumsum_serial_kernel<<<(rows + THREADS - 1) / THREADS, THREADS>>>(x, out, rows, channels);
}
