#include "quad_math.cuh"
#include "reduce.cuh"

constexpr int ROWS = 16, LANES = 8;         // of a block; for each row
constexpr float LOWEST = -3.402823466e38f;  // of all floats: where a maximum begins
constexpr float LOG2_E = 1.442695041f;      // e^x = 2^(x * LOG2_E)

// q, k, v, out: (heads, S, D). out = softmax(q * k^T / sqrt(D)) * v, of each head
// One thread owns every 8th quad of a row, and 8 lanes the row. One block owns 16 rows of a head.
// Changed from `attention_naive`: no scores in memory; loads heads * S * S * D + 5 * heads *
// S * D floats. That is if causal; else nearly twice as many.
template <int D>
__global__ void attention_rows_kernel(const float* q, const float* k, const float* v, float* out,
                                      int S, int causal) {
    constexpr int OWN = D / 4 / LANES;                   // quads of a lane
    int blocks = (S + ROWS - 1) / ROWS;                  // of a head
    size_t first = size_t(blockIdx.x / blocks) * S * D;  // of the head
    int row = blockIdx.x % blocks * ROWS + threadIdx.x / LANES;
    int d0 = threadIdx.x % LANES * 4;
    int keys = causal ? min(S, (row | 3) + 1) : S;  // that the last row of the warp sees
    float4 mine[OWN] = {}, o[OWN] = {};
    for (int i = 0; i < OWN; i++) {
        if (row < S) mine[i] = quad(&q[first + row * D + d0 + 32 * i]) * (LOG2_E / sqrtf(D));
    }
    float m = LOWEST, l = 0.0f;  // the largest score so far; the sum of 2^(score - m)
    for (int key = 0; key < keys; key++) {
        size_t place = first + key * D + d0;
        float score = 0.0f;
        for (int i = 0; i < OWN; i++) score += total(mine[i] * quad(&k[place + 32 * i]));
        score = warp_sum<LANES>(score);
        // BEGIN SOLUTION
        if (causal && key > row) score = -INFINITY;
        float larger = fmaxf(m, score);
        float factor = exp2f(m - larger), p = exp2f(score - larger);
        m = larger;
        l = l * factor + p;
        for (int i = 0; i < OWN; i++) o[i] = o[i] * factor + quad(&v[place + 32 * i]) * p;
        // END SOLUTION
    }
    for (int i = 0; i < OWN; i++) {
        // BEGIN SOLUTION
        if (row < S) quad(&out[first + row * D + d0 + 32 * i]) = o[i] * (1.0f / l);
        // END SOLUTION
    }
}

void attention_rows(const float* q, const float* k, const float* v, float* out, int heads, int S,
                    int D, int causal) {
    int blocks = heads * ((S + ROWS - 1) / ROWS);
    auto kernel = D == 64 ? attention_rows_kernel<64> : attention_rows_kernel<128>;
    kernel<<<blocks, ROWS * LANES>>>(q, k, v, out, S, causal);
}
