// row_min: passed
// few blocks, each of which goes from row to row
#include "reduce.cuh"

constexpr int THREADS = 256, WARPS = THREADS / 32, ROWS = 4;

__global__ void row_min_kernel(const float* x, float* out, int rows, int channels) {
    __shared__ float found[WARPS];
    for (int r = blockIdx.x; r < rows; r += gridDim.x) {
        float least = INFINITY;
        for (int c = threadIdx.x; c < channels; c += THREADS) {
            least = smaller(least, x[size_t(r) * channels + c]);
        }
        least = warp_min(least);
        if (threadIdx.x % 32 == 0) found[threadIdx.x / 32] = least;
        __syncthreads();
        if (threadIdx.x < 32) {
            least = warp_min(threadIdx.x < WARPS ? found[threadIdx.x] : INFINITY);
            if (threadIdx.x == 0) out[r] = least;
        }
        __syncthreads();
    }
}

void row_min(const float* x, float* out, int rows, int channels) {
    row_min_kernel<<<(rows + ROWS - 1) / ROWS, THREADS>>>(x, out, rows, channels);
}
