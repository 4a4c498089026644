#include "eps.cuh"

constexpr int THREADS = 64;

// x, grad_out, dx: (rows, channels), weight, dweight, dbias: (channels). Gradients of GroupNorm.
// One thread owns one group of one row. One block owns 64 groups.
__global__ void groupnorm_backward_serial_kernel(const float* x, const float* weight,
                                                 const float* grad_out, float* dx, float* dweight,
                                                 float* dbias, int rows, int channels, int groups) {
    int group = blockIdx.x * THREADS + threadIdx.x;  // counted through all rows
    if (group >= rows * groups) return;
    int size = channels / groups, first = group * size, c = first % channels;
    float mean = 0.0f, variance = 0.0f, sum = 0.0f, along = 0.0f;
    for (int i = 0; i < size; i++) mean += x[first + i] / size;
    for (int i = 0; i < size; i++) {
        variance += (x[first + i] - mean) * (x[first + i] - mean) / size;
    }
    float rstd = rsqrtf(variance + EPS);
    for (int i = 0; i < size; i++) {
        float n = (x[first + i] - mean) * rstd, g = grad_out[first + i];
        sum += g * weight[c + i] / size;
        along += g * weight[c + i] * n / size;
        atomicAdd(&dweight[c + i], g * n);
        atomicAdd(&dbias[c + i], g);
    }
    for (int i = 0; i < size; i++) {
        float n = (x[first + i] - mean) * rstd, u = grad_out[first + i] * weight[c + i];
        dx[first + i] = (u - sum - n * along) * rstd;
    }
}

void groupnorm_backward_serial(const float* x, const float* weight, const float* grad_out,
                               float* dx, float* dweight, float* dbias, int rows, int channels,
                               int groups) {
    cudaMemset(dweight, 0, channels * sizeof(float));
    cudaMemset(dbias, 0, channels * sizeof(float));
    int blocks = (rows * groups + THREADS - 1) / THREADS;
    groupnorm_backward_serial_kernel<<<blocks, THREADS>>>(x, weight, grad_out, dx, dweight, dbias,
                                                          rows, channels, groups);
}
