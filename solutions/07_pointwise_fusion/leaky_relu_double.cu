#include "quads.cuh"

constexpr int THREADS = 128;  // a block owns 4 * THREADS floats

// leaky_relu(y) + leaky_relu(y), for one element
__device__ float activate(float y) {
    // BEGIN SOLUTION
    return 2.0f * (y > 0.0f ? y : 0.01f * y);
    // STARTER: return y;  // replace this line: your code here
    // END SOLUTION
}

// y, out: (rows, channels), taken as n floats in a row: here no element needs to know its channel.
// One thread owns 4 neighbouring floats. One block owns 4 * THREADS of them.
__global__ void leaky_relu_double_kernel(const float* y, float* out, size_t n) {
    // BEGIN SOLUTION
    size_t i = 4 * (size_t(blockIdx.x) * THREADS + threadIdx.x);
    if (i + 4 <= n && aligned(y) && aligned(out)) {
        float4 v = quad(y + i);
        quad(out + i) = make_float4(activate(v.x), activate(v.y), activate(v.z), activate(v.w));
    } else {  // the last few floats, or an address that allows no quads
        for (size_t end = i + 4; i < end && i < n; i++) out[i] = activate(y[i]);
    }
    // END SOLUTION
}

void leaky_relu_double(const float* y, float* out, int rows, int channels) {
    size_t n = size_t(rows) * channels;  // may be more than an int can hold
    unsigned blocks = (n + 4 * THREADS - 1) / (4 * THREADS);
    leaky_relu_double_kernel<<<blocks, THREADS>>>(y, out, n);
}
