// A softmax of each row by a warp: the largest element, the sum, the quotients.
#include "check.cuh"

__device__ float over_warp(float v, bool largest) {
    for (int d = 16; d; d /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, v, d);
        v = largest ? fmaxf(v, other) : v + other;
    }
    return v;
}
__global__ void softmax(const float* x, float* y, int rows, int columns) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    const float* from = x + row * columns;
    float most = -INFINITY, sum = 0;
    for (int c = threadIdx.x; c < columns; c += 32) most = fmaxf(most, from[c]);
    most = over_warp(most, true);
    for (int c = threadIdx.x; c < columns; c += 32) sum += __expf(from[c] - most);
    sum = over_warp(sum, false);
    for (int c = threadIdx.x; c < columns; c += 32)
        y[row * columns + c] = __expf(from[c] - most) / sum;
}

int main() {
    const int rows = 7, columns = 45;
    std::vector<float> x = some_floats(rows * columns);
    for (float& v : x) v *= 9;
    float *in = to_device(x), *out = to_device(x);
    softmax<<<2, dim3(32, 4)>>>(in, out, rows, columns);
    const std::vector<float> got = to_host(out, rows * columns);
    int wrong = 0;
    for (int r = 0; r < rows; ++r) {
        double sum = 0;
        for (int c = 0; c < columns; ++c) sum += std::exp(double(x[r * columns + c]));
        for (int c = 0; c < columns; ++c)
            wrong += differ(got[r * columns + c], float(std::exp(x[r * columns + c]) / sum));
    }
    return verdict("softmax_rows", wrong);
}
