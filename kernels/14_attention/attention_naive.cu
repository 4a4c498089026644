#include "reduce.cuh"

constexpr int WARPS = 8;  // of a block: one for each of 8 rows

// q, k: (heads, S, D), scores: (heads, S, S). scores = q * k^T / sqrt(D), of each head
// One thread owns one score. One block owns 8 rows x 32 keys of a head.
__global__ void scores_kernel(const float* q, const float* k, float* scores, int S, int D,
                              int causal) {
    int key = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * WARPS + threadIdx.y;
    size_t head = blockIdx.z;
    if (key >= S || row >= S) return;
    const float* a = q + (head * S + row) * D;
    const float* b = k + (head * S + key) * D;
    float sum = 0.0f;
    for (int d = 0; d < D; d++) {
        sum += a[d] * b[d];
    }
    bool masked = causal && key > row;  // a later key
    scores[(head * S + row) * S + key] = masked ? -INFINITY : sum / sqrtf(D);
}

// scores: (heads, S, S). Each row becomes its softmax.
// One thread owns every 32nd score of a row, and one warp the row. One block owns 8 rows of a head.
__global__ void softmax_kernel(float* scores, int S) {
    int row = blockIdx.x * WARPS + threadIdx.y, lane = threadIdx.x;
    if (row >= S) return;  // the whole warp leaves
    float* p = scores + (size_t(blockIdx.y) * S + row) * S;
    float m = -INFINITY, sum = 0.0f;
    for (int key = lane; key < S; key += 32) {
        m = fmaxf(m, p[key]);
    }
    for (int step = 16; step > 0; step /= 2) {
        m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, step));
    }
    for (int key = lane; key < S; key += 32) {
        sum += expf(p[key] - m);
    }
    sum = warp_sum(sum);
    for (int key = lane; key < S; key += 32) {
        p[key] = expf(p[key] - m) / sum;
    }
}

// scores: (heads, S, S), v, out: (heads, S, D). out = scores * v, of each head
// One thread owns one element of out. One block owns 8 rows x 32 columns of a head.
__global__ void values_kernel(const float* scores, const float* v, float* out, int S, int D) {
    int d = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * WARPS + threadIdx.y;
    size_t head = blockIdx.z;
    if (d >= D || row >= S) return;
    const float* p = scores + (head * S + row) * S;
    float sum = 0.0f;
    for (int key = 0; key < S; key++) {
        sum += p[key] * v[(head * S + key) * D + d];
    }
    out[(head * S + row) * D + d] = sum;
}

void attention_naive(const float* q, const float* k, const float* v, float* scores, float* out,
                     int heads, int S, int D, int causal) {
    dim3 block(32, WARPS);
    int rows = (S + WARPS - 1) / WARPS;
    scores_kernel<<<dim3((S + 31) / 32, rows, heads), block>>>(q, k, scores, S, D, causal);
    softmax_kernel<<<dim3(rows, heads), block>>>(scores, S);
    values_kernel<<<dim3((D + 31) / 32, rows, heads), block>>>(scores, v, out, S, D);
}
