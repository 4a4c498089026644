#include "quad_math.cuh"

// BEGIN SOLUTION
// STARTER: // your kernel and its helpers here
constexpr int BM = 64, BN = 64;  // a block owns BM rows of q, and walks over BN keys at a time
constexpr int TM = 8, TN = 4;    // scores of a thread; even lanes share TM rows, odd ones others
constexpr int THREADS = BM / TM * (BN / TN);
constexpr float LOWEST = -3.402823466e38f;  // of all floats: where a maximum begins
constexpr float LOG2_E = 1.442695041f;      // e^x = 2^(x * LOG2_E)

// Rows have four floats more than they need: then 8 lanes with a row each meet no bank twice.
template <int D>
struct Tiles {
    float q[BM][D + 4];
    float kv[BN][D + 4];  // of k, and then of v
    float p[BM][BN + 4];  // 2^(score - m)
};

// What this thread owns: rows and keys of a tile, and the first of each four columns of v and out.
__device__ int own_row(int i) {
    return (threadIdx.x / 32 * 2 + threadIdx.x % 2) * 4 + i / 4 * 32 + i % 4;
}
__device__ int own_key(int j) { return threadIdx.x % 32 / 2 + 16 * j; }
__device__ int own_column(int c) { return threadIdx.x % 32 / 2 * 4 + 64 * c; }

// Over the 16 lanes that share a row: the even ones, or the odd ones. Each of them gets it; all 32
// must call it.
__device__ float row_max(float value) {
#pragma unroll
    for (int step = 16; step > 1; step /= 2) {
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
    }
    return value;
}
__device__ float row_sum(float value) {
#pragma unroll
    for (int step = 16; step > 1; step /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, step);
    }
    return value;
}

// Global -> shared memory: 64 rows of a matrix, times `scale`; zeros beyond its `rows`.
template <int D>
__device__ void load_tile(float (*tile)[D + 4], const float* matrix, int rows, float scale) {
    for (int i = threadIdx.x; i < 64 * D / 4; i += THREADS) {
        int row = i / (D / 4), d = i % (D / 4) * 4;
        float4 v = {};
        if (row < rows) v = quad(&matrix[row * D + d]);
        quad(&tile[row][d]) = v * scale;
    }
}

// Shared memory -> registers: s[i][j] = row own_row(i) of q times key own_key(j).
template <int D>
__device__ void multiply_keys(float (&s)[TM][TN], const Tiles<D>& tiles) {
#pragma unroll 4
    for (int d = 0; d < D; d += 4) {
        float4 k[TN];
        for (int j = 0; j < TN; j++) k[j] = quad(&tiles.kv[own_key(j)][d]);
        for (int i = 0; i < TM; i++) {
            float4 q = quad(&tiles.q[own_row(i)][d]);
            for (int j = 0; j < TN; j++) {
                s[i][j] += q.x * k[j].x + q.y * k[j].y + q.z * k[j].z + q.w * k[j].w;
            }
        }
    }
}

// Shared memory -> registers: o[i] += row own_row(i) of p times v, in the thread's columns.
template <int D>
__device__ void add_values(float4 (&o)[TM][D / 64], const Tiles<D>& tiles) {
#pragma unroll 4
    for (int key = 0; key < BN; key += 4) {
        float4 v[4][D / 64];
        for (int e = 0; e < 4; e++) {
            for (int c = 0; c < D / 64; c++) v[e][c] = quad(&tiles.kv[key + e][own_column(c)]);
        }
        for (int i = 0; i < TM; i++) {
            float4 p = quad(&tiles.p[own_row(i)][key]);
            for (int c = 0; c < D / 64; c++) {
                o[i][c] = o[i][c] + v[0][c] * p.x + v[1][c] * p.y + v[2][c] * p.z + v[3][c] * p.w;
            }
        }
    }
}

// Registers -> shared memory: p = 2^(s - m), of a tile whose keys begin at key0, with s capped.
// m[i] becomes the largest score of the row so far; l[i], of this thread's keys alone, and o[i]
// count from it. A row sees `window` keys up to its own, and perhaps none of its first tile. There
// m[i] stays LOWEST: -INFINITY - -INFINITY would be NaN.
// cap: times LOG2_E, so that scores are exponents of 2
template <int D>
__device__ void update(float (&s)[TM][TN], float (&m)[TM], float (&l)[TM], float4 (&o)[TM][D / 64],
                       Tiles<D>& tiles, int row0, int key0, int window, float cap) {
#pragma unroll
    for (int i = 0; i < TM; i++) {
        int row = row0 + own_row(i);
        float larger = m[i];
        for (int j = 0; j < TN; j++) {
            int key = key0 + own_key(j);
            s[i][j] = cap * tanhf(s[i][j]);  // before the mask: tanh(-INFINITY) is -1
            if (key > row || key <= row - window) s[i][j] = -INFINITY;
            larger = fmaxf(larger, s[i][j]);
        }
        larger = row_max(larger);
        float factor = exp2f(m[i] - larger);
        m[i] = larger;
        l[i] *= factor;
        for (int c = 0; c < D / 64; c++) o[i][c] = o[i][c] * factor;
        for (int j = 0; j < TN; j++) {
            float p = exp2f(s[i][j] - larger);
            l[i] += p;
            tiles.p[own_row(i)][own_key(j)] = p;
        }
    }
}

// q, k, v, out: (heads, S, D). out = softmax(cap * tanh(q * k^T / sqrt(D) / cap)) * v of each
// head, where query i sees the keys from i - window + 1 to i
// One thread owns TM x D / 16 elements of out, in patches of 1 x 4. One block owns BM rows of a
// head. Changed from `flash_attention`: scores are capped, and hidden on both sides; the walk
// begins where the window of the block's first row does. A head of S rows loads about
// S * D * (window / 32 + 4) floats.
template <int D>
__global__ void __launch_bounds__(THREADS)
    window_attention_kernel(const float* q, const float* k, const float* v, float* out, int S,
                            int window, float cap) {
    extern __shared__ __align__(16) char memory[];
    Tiles<D>& tiles = *reinterpret_cast<Tiles<D>*>(memory);
    int blocks = (S + BM - 1) / BM;  // of a head
    int row0 = blockIdx.x % blocks * BM;
    int begin = max(row0 - window + 1, 0) / BN * BN;     // the tile of the first key that row0 sees
    int end = min(S, row0 + BM);                         // no row of the block sees this key
    size_t first = size_t(blockIdx.x / blocks) * S * D;  // of the head
    float m[TM], l[TM] = {};
    float4 o[TM][D / 64] = {};
    for (int i = 0; i < TM; i++) m[i] = LOWEST;
    load_tile<D>(tiles.q, q + first + row0 * D, S - row0, 1.0f / (sqrtf(D) * cap));
    for (int key0 = begin; key0 < end; key0 += BN) {
        float s[TM][TN] = {};
        load_tile<D>(tiles.kv, k + first + key0 * D, S - key0, 1.0f);
        __syncthreads();  // the rows of q and the keys are there
        multiply_keys(s, tiles);
        update(s, m, l, o, tiles, row0, key0, window, cap * LOG2_E);
        __syncthreads();  // everyone has read the keys, and all of p is there
        load_tile<D>(tiles.kv, v + first + key0 * D, S - key0, 1.0f);
        __syncthreads();  // the values are there
        add_values(o, tiles);
        __syncthreads();  // everyone has read the values before the next keys overwrite them
    }
#pragma unroll
    for (int i = 0; i < TM; i++) {
        float sum = row_sum(l[i]);
        int row = row0 + own_row(i);
        float* to = out + first + row * D;
        for (int c = 0; c < D / 64; c++) {
            if (row < S) quad(&to[own_column(c)]) = o[i][c] * (1.0f / sum);
        }
    }
}

template <int D>
void launch(const float* q, const float* k, const float* v, float* out, int heads, int S,
            int window, float cap) {
    auto kernel = window_attention_kernel<D>;
    int blocks = heads * ((S + BM - 1) / BM), bytes = sizeof(Tiles<D>);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<blocks, THREADS, bytes>>>(q, k, v, out, S, window, cap);
}
// END SOLUTION

// q, k, v, out: (heads, S, D), D = 64 or 128; window >= 1, it may be larger than S; cap > 0
void window_attention(const float* q, const float* k, const float* v, float* out, int heads, int S,
                      int D, int window, float cap) {
    // BEGIN SOLUTION
    auto of_size = D == 64 ? launch<64> : launch<128>;
    of_size(q, k, v, out, heads, S, window, cap);
    // END SOLUTION
}
