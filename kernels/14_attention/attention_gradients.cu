#include "quad_math.cuh"
#include "reduce.cuh"

constexpr int ROWS = 16, LANES = 8;     // of a block; for each row
constexpr float LOG2_E = 1.442695041f;  // e^x = 2^(x * LOG2_E)

// What both kernels read: of each head q, k, v, out, grad_out (S, D), row_max, row_sum (S).
struct Inputs {
    const float *q, *k, *v, *out, *grad_out, *row_max, *row_sum;
};

// The product of two rows, of which 8 lanes have a part each. All 32 must call it.
template <int OWN>
__device__ float dot(const float4 (&a)[OWN], const float4 (&b)[OWN]) {
    float sum = 0.0f;
    for (int i = 0; i < OWN; i++) sum += total(a[i] * b[i]);
    return warp_sum<LANES>(sum);
}

// This lane's quads of a row of x, (S, D); zeros from S on.
template <int D>
__device__ void load(float4 (&mine)[D / 4 / LANES], const float* x, int row, int S) {
    for (int i = 0; i < D / 4 / LANES; i++) {
        int d = threadIdx.x % LANES * 4 + 32 * i;
        mine[i] = row < S ? quad(&x[size_t(row) * D + d]) : float4{};
    }
}

// dq: (heads, S, D), the gradient of q
// One thread owns every 8th quad of a row of q, and 8 lanes the row. One block owns 16 rows of a
// head.
template <int D>
__global__ void queries_kernel(Inputs of, float* dq, int S, int causal) {
    constexpr int OWN = D / 4 / LANES;
    int blocks = (S + ROWS - 1) / ROWS, head = blockIdx.x / blocks;
    size_t first = size_t(head) * S * D;
    int row = blockIdx.x % blocks * ROWS + threadIdx.x / LANES;
    int keys = causal ? min(S, (row | 3) + 1) : S;  // that the last row of the warp sees
    float4 q[OWN], grad_out[OWN], out[OWN], sum[OWN] = {};
    load<D>(q, of.q + first, row, S);
    load<D>(grad_out, of.grad_out + first, row, S);
    load<D>(out, of.out + first, row, S);
    float m = row < S ? of.row_max[size_t(head) * S + row] : 0.0f;
    float l = row < S ? of.row_sum[size_t(head) * S + row] : 1.0f;
    float delta = dot(grad_out, out);
    for (int key = 0; key < keys; key++) {
        float4 k[OWN], v[OWN];
        load<D>(k, of.k + first, key, S);
        load<D>(v, of.v + first, key, S);
        float score = dot(q, k) * (LOG2_E / sqrtf(D)), dp = dot(grad_out, v);
        // your code here
    }
    for (int i = 0; i < OWN; i++) {
        int d = threadIdx.x % LANES * 4 + 32 * i;
        // your code here
    }
}

// dk, dv: (heads, S, D), the gradients of k and v
// One thread owns every 8th quad of a row of k and of v, and 8 lanes the row. One block owns 16
// rows of a head.
template <int D>
__global__ void keys_kernel(Inputs of, float* dk, float* dv, int S, int causal) {
    constexpr int OWN = D / 4 / LANES;
    int blocks = (S + ROWS - 1) / ROWS, head = blockIdx.x / blocks;
    size_t first = size_t(head) * S * D;
    int row = blockIdx.x % blocks * ROWS + threadIdx.x / LANES;
    float4 k[OWN], v[OWN], sum_k[OWN] = {}, sum_v[OWN] = {};
    load<D>(k, of.k + first, row, S);
    load<D>(v, of.v + first, row, S);
    int query = causal ? row & ~3 : 0;  // the first that the first row of the warp is seen by
    for (; query < S; query++) {
        float4 q[OWN], grad_out[OWN], out[OWN];
        load<D>(q, of.q + first, query, S);
        load<D>(grad_out, of.grad_out + first, query, S);
        load<D>(out, of.out + first, query, S);
        float m = of.row_max[size_t(head) * S + query], l = of.row_sum[size_t(head) * S + query];
        float score = dot(q, k) * (LOG2_E / sqrtf(D)), dp = dot(grad_out, v);
        float delta = dot(grad_out, out);
        // your code here
    }
    for (int i = 0; i < OWN; i++) {
        size_t at = first + size_t(row) * D + threadIdx.x % LANES * 4 + 32 * i;
        // your code here
    }
}

void attention_gradients(const float* q, const float* k, const float* v, const float* out,
                         const float* row_max, const float* row_sum, const float* grad_out,
                         float* dq, float* dk, float* dv, int heads, int S, int D, int causal) {
    int blocks = heads * ((S + ROWS - 1) / ROWS);
    Inputs of = {q, k, v, out, grad_out, row_max, row_sum};
    auto by_query = D == 64 ? queries_kernel<64> : queries_kernel<128>;
    auto by_key = D == 64 ? keys_kernel<64> : keys_kernel<128>;
    by_query<<<blocks, ROWS * LANES>>>(of, dq, S, causal);
    by_key<<<blocks, ROWS * LANES>>>(of, dk, dv, S, causal);
}
