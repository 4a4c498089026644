// Loads and stores of shared memory: strides and banks, wide accesses, broadcasts, tiles.
// Where a kernel is about loads, it stores without conflicts, and the other way round.
#include "buffers.cuh"

constexpr int WARPS = 4, THREADS = 32 * WARPS;

// Fills n elements without conflicts.
template <class T>
__device__ void fill(T* shared, const float* in, int n) {
    for (int i = threadIdx.x; i < n; i += THREADS) shared[i] = static_cast<T>(in[i]);
    __syncthreads();
}

// --- one word a thread: the lanes' words lie STRIDE apart
// -----------------------------------------
#define LOAD_STRIDE(STRIDE)                                                    \
    __global__ void shared_load_stride_##STRIDE(const float* in, float* out) { \
        __shared__ float s[THREADS * STRIDE];                                  \
        fill(s, in, THREADS * STRIDE);                                         \
        out[threadIdx.x] = s[threadIdx.x * STRIDE];                            \
    }
#define STORE_STRIDE(STRIDE)                                                    \
    __global__ void shared_store_stride_##STRIDE(const float* in, float* out) { \
        __shared__ float s[THREADS * STRIDE];                                   \
        s[threadIdx.x * STRIDE] = in[threadIdx.x];                              \
        __syncthreads();                                                        \
        out[threadIdx.x] = s[(THREADS - 1 - threadIdx.x) * STRIDE];             \
    }
LOAD_STRIDE(1)
LOAD_STRIDE(2)
LOAD_STRIDE(3)
LOAD_STRIDE(4)
LOAD_STRIDE(8)
LOAD_STRIDE(16)
LOAD_STRIDE(32)
LOAD_STRIDE(33)
STORE_STRIDE(1)
STORE_STRIDE(2)
STORE_STRIDE(4)
STORE_STRIDE(8)
STORE_STRIDE(16)
STORE_STRIDE(32)
STORE_STRIDE(33)

// --- several lanes, one word
// ----------------------------------------------------------------------
__global__ void shared_broadcast(const float* in, float* out, int i) {
    __shared__ float s[THREADS];
    fill(s, in, THREADS);
    out[threadIdx.x] = s[i];
}
__global__ void shared_two_words_one_bank(const float* in, float* out) {
    __shared__ float s[THREADS];
    fill(s, in, THREADS);
    out[threadIdx.x] = s[threadIdx.x % 2 * 32];
}
__global__ void shared_two_words_two_banks(const float* in, float* out) {
    __shared__ float s[THREADS];
    fill(s, in, THREADS);
    out[threadIdx.x] = s[threadIdx.x % 2 * 33];
}
__global__ void shared_pairs(const float* in, float* out) {
    __shared__ float s[THREADS];
    fill(s, in, THREADS);
    out[threadIdx.x] = s[threadIdx.x / 2];
}
__global__ void shared_half_warp(const float* in, float* out) {
    __shared__ float s[THREADS * 2];
    fill(s, in, THREADS * 2);
    if (threadIdx.x % 32 < 16) out[threadIdx.x] = s[threadIdx.x * 2];
}

// --- narrow words
// ---------------------------------------------------------------------------------
__global__ void shared_1_byte(const float* in, float* out) {
    __shared__ char s[THREADS];
    fill(s, in, THREADS);
    out[threadIdx.x] = s[THREADS - 1 - threadIdx.x];
}
__global__ void shared_2_bytes(const float* in, float* out) {
    __shared__ short s[THREADS];
    fill(s, in, THREADS);
    out[threadIdx.x] = s[THREADS - 1 - threadIdx.x];
}
__global__ void shared_1_byte_stride_128(const float* in, float* out) {
    __shared__ char s[128 * 32];
    fill(s, in, 128 * 32);
    out[threadIdx.x] = s[threadIdx.x % 32 * 128];
}

// --- 8 bytes a thread
// -----------------------------------------------------------------------------
__device__ float sum(float2 v) { return v.x + v.y; }
__device__ float sum(float4 v) { return v.x + v.y + v.z + v.w; }
#define VECTOR(NAME, T, INDEX)                          \
    __global__ void NAME(const float* in, float* out) { \
        __shared__ T s[THREADS * 4];                    \
        fill((float*)s, in, THREADS * sizeof(T));       \
        const int t = threadIdx.x;                      \
        out[t] = sum(s[INDEX]);                         \
    }
VECTOR(float2_linear, float2, t)
VECTOR(float2_stride_2, float2, 2 * t)
VECTOR(float2_stride_3, float2, 3 * t)
VECTOR(float2_broadcast, float2, t / 32)
VECTOR(float2_pairs, float2, t / 2)
VECTOR(float2_pairs_stride_16, float2, t / 2 % 16 * 16)
VECTOR(float2_halves_alike, float2, t % 16)
VECTOR(float2_alternating, float2, t % 2)
VECTOR(float2_quads, float2, t / 4)
VECTOR(float2_reversed, float2, 127 - t)
VECTOR(float2_stride_16, float2, t % 32 * 16)

// --- 16 bytes a thread
// ----------------------------------------------------------------------------
VECTOR(float4_linear, float4, t)
VECTOR(float4_shared_stride_2, float4, 2 * t)
VECTOR(float4_stride_3, float4, 3 * t)
VECTOR(float4_broadcast, float4, t / 32)
VECTOR(float4_pairs, float4, t / 2)
VECTOR(float4_quads, float4, t / 4)
VECTOR(float4_octets, float4, t / 8)
VECTOR(float4_octets_alike, float4, t % 8)
VECTOR(float4_halves_alike, float4, t % 16)
VECTOR(float4_alternating, float4, t % 2)
VECTOR(float4_shared_stride_8, float4, t % 32 * 8)
VECTOR(float4_stride_9, float4, t % 32 * 9)
__global__ void float2_half_warp(const float* in, float* out) {
    __shared__ float2 s[THREADS];
    fill((float*)s, in, THREADS * 2);
    if (threadIdx.x % 32 < 16) out[threadIdx.x] = sum(s[threadIdx.x]);
}
__global__ void float2_even_lanes(const float* in, float* out) {
    __shared__ float2 s[THREADS];
    fill((float*)s, in, THREADS * 2);
    if (threadIdx.x % 2 == 0) out[threadIdx.x] = sum(s[threadIdx.x]);
}
__global__ void float4_quarter_warp(const float* in, float* out) {
    __shared__ float4 s[THREADS];
    fill((float*)s, in, THREADS * 4);
    if (threadIdx.x % 32 < 8) out[threadIdx.x] = sum(s[threadIdx.x]);
}
__global__ void float4_even_lanes(const float* in, float* out) {
    __shared__ float4 s[THREADS];
    fill((float*)s, in, THREADS * 4);
    if (threadIdx.x % 2 == 0) out[threadIdx.x] = sum(s[threadIdx.x]);
}
__global__ void float4_every_fourth_lane(const float* in, float* out) {
    __shared__ float4 s[THREADS];
    fill((float*)s, in, THREADS * 4);
    if (threadIdx.x % 4 == 0) out[threadIdx.x] = sum(s[threadIdx.x]);
}
__global__ void float2_store(const float2* in, float* out) {
    __shared__ float2 s[THREADS];
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = ((float*)s)[THREADS - 1 - threadIdx.x];
}
__global__ void float2_store_stride_2(const float2* in, float* out) {
    __shared__ float2 s[2 * THREADS];
    s[2 * threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[2 * (THREADS - 1 - threadIdx.x)].x;
}
__global__ void float4_store(const float4* in, float* out) {
    __shared__ float4 s[THREADS];
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = ((float*)s)[THREADS - 1 - threadIdx.x];
}
__global__ void float4_store_stride_3(const float4* in, float* out) {
    __shared__ float4 s[3 * THREADS];
    s[3 * threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[3 * (THREADS - 1 - threadIdx.x)].y;
}
__global__ void float4_store_stride_8(const float4* in, float* out) {
    __shared__ float4 s[8 * 32];
    if (threadIdx.x < 32) s[8 * threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 32) out[threadIdx.x] = s[8 * (31 - threadIdx.x)].y;
}

// --- tiles
// ----------------------------------------------------------------------------------------
template <int WIDTH>
__device__ void transpose(const float* in, float* out) {
    __shared__ float tile[32][WIDTH];
    for (int row = threadIdx.y; row < 32; row += 8)
        tile[row][threadIdx.x] = in[row * 32 + threadIdx.x];
    __syncthreads();
    for (int row = threadIdx.y; row < 32; row += 8)
        out[row * 32 + threadIdx.x] = tile[threadIdx.x][row];
}
__global__ void transpose_unpadded(const float* in, float* out) { transpose<32>(in, out); }
__global__ void transpose_padded(const float* in, float* out) { transpose<33>(in, out); }
__global__ void dynamic_shared(const float* in, float* out) {
    extern __shared__ float d[];
    d[threadIdx.x * 2] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = d[(THREADS - 1 - threadIdx.x) * 2];
}
__global__ void stencil(const float* in, float* out) {
    __shared__ float s[THREADS + 2];
    s[threadIdx.x + 1] = in[threadIdx.x + 1];
    if (threadIdx.x == 0) s[0] = in[0];
    if (threadIdx.x == THREADS - 1) s[THREADS + 1] = in[THREADS + 1];
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 1] + s[threadIdx.x + 2];
}

int main() {
    const float* in = filled(33 * THREADS * 4);
    float* out = filled(THREADS * 16);
    shared_load_stride_1<<<1, THREADS>>>(in, out);
    shared_load_stride_2<<<1, THREADS>>>(in, out);
    shared_load_stride_3<<<1, THREADS>>>(in, out);
    shared_load_stride_4<<<1, THREADS>>>(in, out);
    shared_load_stride_8<<<1, THREADS>>>(in, out);
    shared_load_stride_16<<<1, THREADS>>>(in, out);
    shared_load_stride_32<<<1, THREADS>>>(in, out);
    shared_load_stride_33<<<1, THREADS>>>(in, out);
    shared_store_stride_1<<<1, THREADS>>>(in, out);
    shared_store_stride_2<<<1, THREADS>>>(in, out);
    shared_store_stride_4<<<1, THREADS>>>(in, out);
    shared_store_stride_8<<<1, THREADS>>>(in, out);
    shared_store_stride_16<<<1, THREADS>>>(in, out);
    shared_store_stride_32<<<1, THREADS>>>(in, out);
    shared_store_stride_33<<<1, THREADS>>>(in, out);
    shared_broadcast<<<1, THREADS>>>(in, out, 5);
    shared_two_words_one_bank<<<1, THREADS>>>(in, out);
    shared_two_words_two_banks<<<1, THREADS>>>(in, out);
    shared_pairs<<<1, THREADS>>>(in, out);
    shared_half_warp<<<1, THREADS>>>(in, out);
    shared_1_byte<<<1, THREADS>>>(in, out);
    shared_2_bytes<<<1, THREADS>>>(in, out);
    shared_1_byte_stride_128<<<1, THREADS>>>(in, out);
    float2_linear<<<1, THREADS>>>(in, out);
    float2_stride_2<<<1, THREADS>>>(in, out);
    float2_stride_3<<<1, THREADS>>>(in, out);
    float2_broadcast<<<1, THREADS>>>(in, out);
    float2_pairs<<<1, THREADS>>>(in, out);
    float2_pairs_stride_16<<<1, THREADS>>>(in, out);
    float2_halves_alike<<<1, THREADS>>>(in, out);
    float2_alternating<<<1, THREADS>>>(in, out);
    float2_quads<<<1, THREADS>>>(in, out);
    float2_reversed<<<1, THREADS>>>(in, out);
    float2_stride_16<<<1, THREADS>>>(in, out);
    float4_linear<<<1, THREADS>>>(in, out);
    float4_shared_stride_2<<<1, THREADS>>>(in, out);
    float4_stride_3<<<1, THREADS>>>(in, out);
    float4_broadcast<<<1, THREADS>>>(in, out);
    float4_pairs<<<1, THREADS>>>(in, out);
    float4_quads<<<1, THREADS>>>(in, out);
    float4_octets<<<1, THREADS>>>(in, out);
    float4_octets_alike<<<1, THREADS>>>(in, out);
    float4_halves_alike<<<1, THREADS>>>(in, out);
    float4_alternating<<<1, THREADS>>>(in, out);
    float4_shared_stride_8<<<1, THREADS>>>(in, out);
    float4_stride_9<<<1, THREADS>>>(in, out);
    float2_half_warp<<<1, THREADS>>>(in, out);
    float2_even_lanes<<<1, THREADS>>>(in, out);
    float4_quarter_warp<<<1, THREADS>>>(in, out);
    float4_even_lanes<<<1, THREADS>>>(in, out);
    float4_every_fourth_lane<<<1, THREADS>>>(in, out);
    float2_store<<<1, THREADS>>>((const float2*)in, out);
    float2_store_stride_2<<<1, THREADS>>>((const float2*)in, out);
    float4_store<<<1, THREADS>>>((const float4*)in, out);
    float4_store_stride_3<<<1, THREADS>>>((const float4*)in, out);
    float4_store_stride_8<<<1, THREADS>>>((const float4*)in, out);
    transpose_unpadded<<<1, dim3(32, 8)>>>(in, out);
    transpose_padded<<<1, dim3(32, 8)>>>(in, out);
    dynamic_shared<<<1, THREADS, THREADS * 2 * sizeof(float)>>>(in, out);
    stencil<<<1, THREADS>>>(in, out);
    check(cudaDeviceSynchronize());
}
