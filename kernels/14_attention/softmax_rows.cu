#include "quads.cuh"

constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int KEPT = 8;                     // quads of a row that a thread keeps in registers
constexpr float LOWEST = -3.402823466e38f;  // of all floats: where a maximum begins

// What is known of some values of a row: the largest, and the sum of exp(value - m).
struct Running {
    float m, sum;
};

// Of the values of both.
__device__ Running merged(Running a, Running b) {
    return a;  // your code here
}

// Of those and four more.
__device__ Running with(Running a, float4 v) {
    return a;  // your code here
}

// Of the values of all lanes. Every lane gets it; all 32 must call it.
__device__ Running warp_merged(Running mine) {
    // your code here
    return mine;
}

// Of the values of the whole block. Every thread gets it; all must call it.
__device__ Running block_merged(Running mine) {
    __shared__ Running partials[WARPS];  // of each warp
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    mine = warp_merged(mine);
    if (lane == 0) partials[warp] = mine;
    __syncthreads();  // those of every warp are there before anyone reads them
    return warp_merged(lane < WARPS ? partials[lane] : Running{LOWEST, 0.0f});
}

// Memory -> registers: four values of a row, from channel c on. -INFINITY beyond its end: its
// exponential is 0.
__device__ float4 read(const float* row, int channels, int c) {
    if (channels % 4 == 0 && c < channels) return quad(&row[c]);
    float4 v = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    if (c + 0 < channels) v.x = row[c];
    if (c + 1 < channels) v.y = row[c + 1];
    if (c + 2 < channels) v.z = row[c + 2];
    if (c + 3 < channels) v.w = row[c + 3];
    return v;
}

// x, out: (rows, channels). out = exp(x - m) / (sum of exp(x - m)), m the largest value of the row
// One thread owns every 256th quad of a row. One block owns the row. Changed from
// `softmax_three_passes`: one pass, to 8192 channels; loads rows * channels floats.
__global__ void __launch_bounds__(THREADS)
    softmax_rows_kernel(const float* x, float* out, int channels) {
    constexpr int STEP = 4 * THREADS;  // channels that the block goes over at a time
    const float* row = x + size_t(blockIdx.x) * channels;
    float* to = out + size_t(blockIdx.x) * channels;
    int c0 = 4 * threadIdx.x;
    float4 kept[KEPT];
    Running mine = {LOWEST, 0.0f};
#pragma unroll
    for (int i = 0; i < KEPT; i++) kept[i] = read(row, channels, c0 + i * STEP);
#pragma unroll
    for (int i = 0; i < KEPT; i++) mine = with(mine, kept[i]);
    for (int c = c0 + KEPT * STEP; c < channels; c += STEP) {
        mine = with(mine, read(row, channels, c));
    }
    Running all = block_merged(mine);
    float share = 1.0f / all.sum;
    auto write = [=](int c, float4 v) {
        // your code here
    };
#pragma unroll
    for (int i = 0; i < KEPT; i++) write(c0 + i * STEP, kept[i]);
    for (int c = c0 + KEPT * STEP; c < channels; c += STEP) write(c, read(row, channels, c));
}

void softmax_rows(const float* x, float* out, int rows, int channels) {
    softmax_rows_kernel<<<rows, THREADS>>>(x, out, channels);
}
