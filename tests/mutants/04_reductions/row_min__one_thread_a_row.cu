// reject: gate
// Fault: a thread for each row: 32 sectors a request
constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;

// The smaller of two; NaN if either is NaN, as in PyTorch.
__device__ float smaller(float a, float b) { return a < b || isnan(a) ? a : b; }

// The smallest value of all 32 lanes, in every lane.
__device__ float warp_min(float value) {
    for (int step = 16; step > 0; step /= 2) {
        value = smaller(value, __shfl_xor_sync(0xffffffff, value, step));
    }
    return value;
}

// x: (rows, channels), out: (rows). out[i] = the smallest element of row i
// One thread owns every THREADS-th element of a row. One block owns one row.
__global__ void row_min_kernel(const float* x, float* out, int rows, int channels) {
    int r = blockIdx.x * THREADS + threadIdx.x;
    if (r >= rows) return;
    float value = INFINITY;
    for (int c = 0; c < channels; c++) {
        value = smaller(value, x[r * channels + c]);
    }
    out[r] = value;
}

void row_min(const float* x, float* out, int rows, int channels) {
    row_min_kernel<<<(rows + THREADS - 1) / THREADS, THREADS>>>(x, out, rows, channels);
}
