// reject: wrong values
// Wrong: the upper half of the warp is never asked

// fault: shuffle by part of a warp, line 14
constexpr int WARPS = 4;

// x: (rows, cols), out: (rows). The largest element of each row.
// One thread owns every 32nd element of a row, one warp owns a row. One block owns WARPS rows.
__global__ void row_max_kernel(const float* x, float* out, int rows, int cols) {
    int lane = threadIdx.x % 32;
    int row = blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= rows) return;  // all lanes of a warp have the same row: it leaves as a whole
    float best = -INFINITY;
    for (int c = lane; c < cols; c += 32) best = fmaxf(best, x[row * cols + c]);
    for (int step = 8; step > 0; step /= 2) {
        best = fmaxf(best, __shfl_down_sync(0xffffffff, best, step));
    }
    if (lane == 0) out[row] = best;
}

void row_max(const float* x, float* out, int rows, int cols) {
    row_max_kernel<<<(rows + WARPS - 1) / WARPS, 32 * WARPS>>>(x, out, rows, cols);
}
