// The rows' gradients, by the channel that each row's minimum was at. From exercise 12.8.
#pragma once

// argmin, d, normal: (rows), dweight, dbias: (channels). dbias[c] = the sum of d[r], dweight[c] of
// d[r] * normal[r], over the rows whose minimum is at c.
// One thread owns every 8th row for a channel. One block of (32, 8) threads owns 32 channels.
static __global__ void gather_gradients_kernel(const int* argmin, const float* d,
                                               const float* normal, float* dweight, float* dbias,
                                               int rows, int channels) {
    __shared__ float weights[8][32], biases[8][32];
    int channel = blockIdx.x * 32 + threadIdx.x;
    float w = 0.0f, b = 0.0f;
    for (int row = threadIdx.y; row < rows; row += 8) {
        if (argmin[row] != channel) continue;
        w += d[row] * normal[row];
        b += d[row];
    }
    weights[threadIdx.y][threadIdx.x] = w;
    biases[threadIdx.y][threadIdx.x] = b;
    __syncthreads();  // the sums of all 8 warps are there before the first warp adds them
    if (threadIdx.y > 0 || channel >= channels) return;
    for (int i = 1; i < 8; i++) {
        w += weights[i][threadIdx.x];
        b += biases[i][threadIdx.x];
    }
    dweight[channel] = w;
    dbias[channel] = b;
}
