#include "quads.cuh"
#include "running.cuh"

constexpr int THREADS = 1024;
constexpr int STEP = 4 * THREADS;  // classes that the block goes over at a time
constexpr int KEPT = 8;            // quads of a row that a thread keeps in registers

// x, grad: (rows, classes), target: (rows), the class that is right, loss: (rows).
// loss[r] = -log p[r][target[r]], with p = softmax of the row; grad = that of the mean loss by x:
// (p - 1) / rows at the target, p / rows elsewhere
// One thread owns every 1024th quad of a row. One block owns the row.
__global__ void __launch_bounds__(THREADS)
    cross_entropy_kernel(const float* x, const long long* target, float* loss, float* grad,
                         int classes, float scale) {
    const float* row = x + size_t(blockIdx.x) * classes;
    float* to = grad + size_t(blockIdx.x) * classes;
    int c0 = 4 * threadIdx.x, right = target[blockIdx.x];
    float4 kept[KEPT];
    Running mine;
#pragma unroll
    for (int i = 0; i < KEPT; i++) kept[i] = load4_or_lowest(row, classes, c0 + i * STEP);
#pragma unroll
    for (int i = 0; i < KEPT; i++) mine = with(mine, kept[i]);
    for (int c = c0 + KEPT * STEP; c < classes; c += STEP) {
        mine = with(mine, load4_or_lowest(row, classes, c));
    }
    Running all = block_merged<THREADS>(mine);
    // BEGIN SOLUTION
    if (threadIdx.x == 0) loss[blockIdx.x] = logf(all.sum) - (row[right] - all.m);
    float share = scale / all.sum;
    // END SOLUTION
    auto write = [=](int c, float4 v) {
        // BEGIN SOLUTION
        v = {expf(v.x - all.m) * share, expf(v.y - all.m) * share, expf(v.z - all.m) * share,
             expf(v.w - all.m) * share};
        if (right == c + 0) v.x -= scale;
        if (right == c + 1) v.y -= scale;
        if (right == c + 2) v.z -= scale;
        if (right == c + 3) v.w -= scale;
        // END SOLUTION
        store4(to, 1, classes, 0, c, v, classes % 4 == 0 && c < classes);
    };
#pragma unroll
    for (int i = 0; i < KEPT; i++) write(c0 + i * STEP, kept[i]);
    for (int c = c0 + KEPT * STEP; c < classes; c += STEP) {
        write(c, load4_or_lowest(row, classes, c));
    }
}

void cross_entropy(const float* x, const long long* target, float* loss, float* grad, int rows,
                   int classes) {
    cross_entropy_kernel<<<rows, THREADS>>>(x, target, loss, grad, classes, 1.0f / rows);
}
