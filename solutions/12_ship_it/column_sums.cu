#include "scratch.cuh"

constexpr int WIDTH = 32, HEIGHT = 8;  // threads of a block
constexpr int ROWS = 128;              // of x, for each block of the first launch

// x: (rows, channels), out: (parts, channels). out[p][c] = the sum of x[r][c] over the rows from
// p * each on, `each` of them at most. Changed from `column_sums_atomic`: parts of the rows, then
// parts of the parts; loads rows * channels + channels * rows / 128 floats.
// One thread owns every 8th value of a column. One block owns 32 columns of a part.
__global__ void column_sums_kernel(const float* x, float* out, int rows, int channels, int each) {
    __shared__ float sums[HEIGHT][WIDTH];
    int channel = blockIdx.x * WIDTH + threadIdx.x;
    int first = blockIdx.y * each, end = min(first + each, rows);  // the rows of this part
    // BEGIN SOLUTION
    float sum = 0.0f;
    for (int row = first + threadIdx.y; row < end && channel < channels; row += HEIGHT) {
        sum += x[row * channels + channel];
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();  // the sums of all 8 warps are there before the first warp adds them
    if (threadIdx.y > 0 || channel >= channels) return;
    for (int i = 1; i < HEIGHT; i++) sum += sums[i][threadIdx.x];
    out[blockIdx.y * channels + channel] = sum;
    // END SOLUTION
}

void column_sums(const float* x, float* out, int rows, int channels) {
    int parts = (rows + ROWS - 1) / ROWS;
    Scratch<float> partials(parts * channels);  // (parts, channels), for the time of this call
    dim3 block(WIDTH, HEIGHT), grid((channels + WIDTH - 1) / WIDTH, parts);
    // BEGIN SOLUTION
    column_sums_kernel<<<grid, block>>>(x, partials.data, rows, channels, ROWS);
    column_sums_kernel<<<grid.x, block>>>(partials.data, out, parts, channels, parts);
    // END SOLUTION
}
