// attention_gradients: passed
// as FlashAttention 2: one walk, by keys, whose dq is added up in memory; delta comes of a launch of
// its own
#include "quad_math.cuh"
#include "reduce.cuh"
#include "scratch.cuh"

constexpr int LANES = 8, WARPS = 2;  // lanes of a key
constexpr int KEYS = WARPS * 32 / LANES;

// delta: (rows), the sum of grad_out * out. One warp owns a row.
__global__ void delta_kernel(const float* out, const float* grad_out, float* delta, int rows,
                             int D) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int d = threadIdx.x; d < D; d += 32) {
        sum += out[size_t(row) * D + d] * grad_out[size_t(row) * D + d];
    }
    sum = warp_sum(sum);
    if (threadIdx.x == 0) delta[row] = sum;
}

// One thread owns every 8th float4 of a row of k and v. A warp owns 4 keys of a head.
template <int D>
__global__ void one_walk_kernel(const float* q, const float* k, const float* v,
                                const float* row_max, const float* row_sum, const float* grad_out,
                                const float* delta, float* dq, float* dk, float* dv, int S,
                                int causal) {
    constexpr int OWN = D / 4 / LANES;
    size_t head = size_t(blockIdx.y) * S;
    int lane = threadIdx.x % 32, key0 = blockIdx.x * KEYS + threadIdx.x / 32 * 4;
    int key = key0 + lane / LANES, part = lane % LANES * 4;
    bool mine = key < S;
    float4 keys[OWN], values[OWN], sum_k[OWN] = {}, sum_v[OWN] = {};
    for (int i = 0; i < OWN; i++) {
        size_t at = (head + key) * D + part + 32 * i;
        keys[i] = mine ? quad(&k[at]) : float4{};
        values[i] = mine ? quad(&v[at]) : float4{};
    }
    float scale = 1.0f / sqrtf(D);
    for (int query = S - 1; query >= (causal ? key0 : 0); query--) {  // from the last to the first
        float4 ours[OWN], grads[OWN];
        float score = 0.0f, dp = 0.0f;
        for (int i = 0; i < OWN; i++) {
            size_t at = (head + query) * D + part + 32 * i;
            ours[i] = quad(&q[at]);
            grads[i] = quad(&grad_out[at]);
            score += total(ours[i] * keys[i]);
            dp += total(grads[i] * values[i]);
        }
        score = warp_sum<LANES>(score) * scale * 1.442695041f;
        dp = warp_sum<LANES>(dp);
        bool seen = mine && (!causal || key <= query);
        float p = seen ? exp2f(score - row_max[head + query]) / row_sum[head + query] : 0.0f;
        float ds = p * (dp - delta[head + query]);
        for (int i = 0; i < OWN; i++) {
            sum_v[i] = sum_v[i] + grads[i] * p;
            sum_k[i] = sum_k[i] + ours[i] * ds;
            float4 more = keys[i] * (ds * scale);
            float four[4] = {more.x, more.y, more.z, more.w}, whole = 0.0f;
            for (int j = 0; j < 4; j++) {  // over the four keys of the warp
                float sum = four[j];
                sum += __shfl_xor_sync(0xffffffffu, sum, 8);
                sum += __shfl_xor_sync(0xffffffffu, sum, 16);
                if (lane / LANES == j) whole = sum;
            }
            atomicAdd(&dq[(head + query) * D + part + 32 * i + lane / LANES], whole);
        }
    }
    for (int i = 0; i < OWN && mine; i++) {
        size_t at = (head + key) * D + part + 32 * i;
        quad(&dk[at]) = sum_k[i] * scale;
        quad(&dv[at]) = sum_v[i];
    }
}

void attention_gradients(const float* q, const float* k, const float* v, const float* out,
                         const float* row_max, const float* row_sum, const float* grad_out,
                         float* dq, float* dk, float* dv, int heads, int S, int D, int causal) {
    Scratch<float> delta(size_t(heads) * S);
    delta_kernel<<<(heads * S + 3) / 4, dim3(32, 4)>>>(out, grad_out, delta.data, heads * S, D);
    cudaMemsetAsync(dq, 0, size_t(heads) * S * D * sizeof(float));
    auto kernel = D == 64 ? one_walk_kernel<64> : one_walk_kernel<128>;
    kernel<<<dim3((S + KEYS - 1) / KEYS, heads), 32 * WARPS>>>(
        q, k, v, row_max, row_sum, grad_out, delta.data, dq, dk, dv, S, causal);
}
