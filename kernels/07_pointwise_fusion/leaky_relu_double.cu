#include "quads.cuh"

constexpr int THREADS = 128;  // a block owns 4 * THREADS floats

// leaky_relu(y) + leaky_relu(y), for one element
__device__ float activate(float y) {
    return y;  // replace this line: your code here
}

// y, out: (rows, channels), taken as n floats in a row: here no element needs to know its channel.
// One thread owns 4 neighbouring floats. One block owns 4 * THREADS of them.
__global__ void leaky_relu_double_kernel(const float* y, float* out, size_t n) {
    // your code here
}

void leaky_relu_double(const float* y, float* out, int rows, int channels) {
    size_t n = size_t(rows) * channels;  // may be more than an int can hold
    unsigned blocks = (n + 4 * THREADS - 1) / (4 * THREADS);
    leaky_relu_double_kernel<<<blocks, THREADS>>>(y, out, n);
}
