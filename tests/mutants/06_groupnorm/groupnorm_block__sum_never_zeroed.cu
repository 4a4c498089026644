// reject: uninitialized
// Fault: adds to a sum in shared memory that nobody set to 0
#include "reduce.cuh"

constexpr int THREADS = 128;

// x, out: (rows, channels), weight, bias: (channels)
// out = (x - mean) * rstd * weight + bias, with mean and rstd of x's own group in its own row
// One thread owns every 128th value of a group. One block owns one group of one row.
__global__ void groupnorm_block_kernel(const float* x, const float* weight, const float* bias,
                                       float* out, int channels, int groups, float eps) {
    int size = channels / groups;
    int first = blockIdx.x * size;   // the first value of the group
    int channel = first % channels;  // and its channel
    float sum = 0.0f, squares = 0.0f;
    for (int i = threadIdx.x; i < size; i += THREADS) {
        sum += x[first + i];
    }
    __shared__ float total;
    atomicAdd(&total, sum);
    __syncthreads();  // every thread has added its part
    float mean = total / size;
    for (int i = threadIdx.x; i < size; i += THREADS) {
        float d = x[first + i] - mean;
        squares += d * d;
    }
    float rstd = rsqrtf(block_sum<THREADS>(squares) / size + eps);
    for (int i = threadIdx.x; i < size; i += THREADS) {
        float y = (x[first + i] - mean) * rstd;
        out[first + i] = y * weight[channel + i] + bias[channel + i];
    }
}

void groupnorm_block(const float* x, const float* weight, const float* bias, float* out, int rows,
                     int channels, int groups, float eps) {
    int blocks = rows * groups;
    groupnorm_block_kernel<<<blocks, THREADS>>>(x, weight, bias, out, channels, groups, eps);
}
