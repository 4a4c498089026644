// attention_gradients: passed
// a block brings tiles of 16 rows to shared memory, and each thread has a score of 16 x 16; then a
// thread owns columns of the sums; blocks go over all tiles of all heads
#include "quad_math.cuh"

constexpr int TILE = 16, THREADS = TILE * TILE;

struct Tensors {
    const float *q, *k, *v, *out, *row_max, *row_sum, *grad_out;
    float *dq, *dk, *dv;
};

// Rows row0 on of x, (S, D), to shared memory; zeros from S on.
template <int D>
__device__ void bring(float (*tile)[D + 4], const float* x, int row0, int S) {
    for (int i = threadIdx.x; i < TILE * D / 4; i += THREADS) {
        int row = i / (D / 4), d = i % (D / 4) * 4;
        quad(&tile[row][d]) = row0 + row < S ? quad(&x[size_t(row0 + row) * D + d]) : float4{};
    }
}

// Own rows are queries (dq), or keys (dk and dv); the others are walked over.
template <int D, bool QUERIES>
__global__ void tiles_kernel(Tensors t, int heads, int S, int causal) {
    // Of the own rows q and grad_out, or k and v; of the others the same, the other way round.
    __shared__ alignas(16) float own[2][TILE][D + 4], others[2][TILE][D + 4];
    __shared__ alignas(16) float outs[TILE][D + 4];
    __shared__ float p[TILE][TILE + 1], ds[TILE][TILE + 1];  // [own][other]
    __shared__ float delta[TILE], row_max[TILE], row_sum[TILE];
    constexpr int MINE = TILE * D / THREADS;
    int tiles = (S + TILE - 1) / TILE, mine = threadIdx.x / TILE, other = threadIdx.x % TILE;
    for (int work = blockIdx.x; work < heads * tiles; work += gridDim.x) {
        size_t head = size_t(work / tiles) * S;
        int tile = work % tiles, row0 = tile * TILE;
        int first = causal && !QUERIES ? tile : 0, end = causal && QUERIES ? tile + 1 : tiles;
        float sums[2][MINE] = {};
        bring<D>(own[0], (QUERIES ? t.q : t.k) + head * D, row0, S);
        bring<D>(own[1], (QUERIES ? t.grad_out : t.v) + head * D, row0, S);
        for (int j = first; j < end; j++) {
            int at = j * TILE, queries = QUERIES ? row0 : at;
            bring<D>(others[0], (QUERIES ? t.k : t.q) + head * D, at, S);
            bring<D>(others[1], (QUERIES ? t.v : t.grad_out) + head * D, at, S);
            if (!QUERIES || j == first) {
                bring<D>(outs, t.out + head * D, queries, S);
                if (threadIdx.x < TILE && queries + threadIdx.x < S) {
                    row_max[threadIdx.x] = t.row_max[head + queries + threadIdx.x];
                    row_sum[threadIdx.x] = t.row_sum[head + queries + threadIdx.x];
                }
            }
            __syncthreads();
            if (threadIdx.x < TILE && (!QUERIES || j == first)) {
                float sum = 0.0f;
                for (int d = 0; d < D; d++) {
                    sum += outs[threadIdx.x][d] * (QUERIES ? own : others)[1][threadIdx.x][d];
                }
                delta[threadIdx.x] = sum;
            }
            __syncthreads();
            float score = 0.0f, dp = 0.0f;
            for (int d = 0; d < D; d += 4) {
                score += total(quad(&own[0][mine][d]) * quad(&others[0][other][d]));
                dp += total(quad(&own[1][mine][d]) * quad(&others[1][other][d]));
            }
            int row = QUERIES ? mine : other;
            int query = queries + row, key = QUERIES ? at + other : row0 + mine;
            bool seen = query < S && key < S && (!causal || key <= query);
            float weight = 0.0f;
            if (seen) {
                weight = exp2f(score * (1.442695041f / sqrtf(D)) - row_max[row]) / row_sum[row];
            }
            p[mine][other] = weight;
            ds[mine][other] = seen ? weight * (dp - delta[row]) : 0.0f;
            __syncthreads();
            for (int i = 0; i < MINE; i++) {
                int r = (threadIdx.x + i * THREADS) / D, d = threadIdx.x % D;
                for (int o = 0; o < TILE; o++) {
                    sums[0][i] += ds[r][o] * others[0][o][d];
                    if (!QUERIES) sums[1][i] += p[r][o] * others[1][o][d];
                }
            }
            __syncthreads();
        }
        for (int i = 0; i < MINE; i++) {
            int r = (threadIdx.x + i * THREADS) / D, d = threadIdx.x % D;
            if (row0 + r >= S) continue;
            size_t to = (head + row0 + r) * D + d;
            (QUERIES ? t.dq : t.dk)[to] = sums[0][i] / sqrtf(D);
            if (!QUERIES) t.dv[to] = sums[1][i];
        }
        __syncthreads();
    }
}

void attention_gradients(const float* q, const float* k, const float* v, const float* out,
                         const float* row_max, const float* row_sum, const float* grad_out,
                         float* dq, float* dk, float* dv, int heads, int S, int D, int causal) {
    Tensors t = {q, k, v, out, row_max, row_sum, grad_out, dq, dk, dv};
    int blocks = min(264, heads * ((S + TILE - 1) / TILE));
    auto queries = D == 64 ? tiles_kernel<64, true> : tiles_kernel<128, true>;
    auto keys = D == 64 ? tiles_kernel<64, false> : tiles_kernel<128, false>;
    keys<<<blocks, THREADS>>>(t, heads, S, causal);
    queries<<<blocks, THREADS>>>(t, heads, S, causal);
}
