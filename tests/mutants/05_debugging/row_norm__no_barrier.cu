// reject: race
// Wrong: mended, and the barrier is gone

// fault: shared memory never written, line 8 or 17 or 20
constexpr int THREADS = 256;

// x: (rows, cols), out: (rows). The root of the sum of the squares of each row.
// One thread owns every 256th element of a row. One block owns a row.
__global__ void row_norm_kernel(const float* x, float* out, int cols) {
    __shared__ float partial[32];
    int row = blockIdx.x, t = threadIdx.x;
    int lane = t % 32, warp = t / 32;
    float sum = 0.0f;
    for (int c = t; c < cols; c += THREADS) {
        float v = x[row * cols + c];
        sum += v * v;
    }
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
    if (lane == 0) partial[warp] = sum;
    if (warp == 0) {
        sum = lane < THREADS / 32 ? partial[lane] : 0.0f;
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
        if (lane == 0) out[row] = sqrtf(sum);
    }
}

void row_norm(const float* x, float* out, int rows, int cols) {
    row_norm_kernel<<<rows, THREADS>>>(x, out, cols);
}
