#include "quads.cuh"

constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int KEPT = 8;             // quads of a tile that a thread keeps in registers
constexpr int STEP = 4 * THREADS;   // channels between two of them
constexpr int TILE = KEPT * STEP;   // channels that a block has at a time
constexpr int SUMS = KEPT * WARPS;  // one for each 32 quads of a tile
constexpr unsigned ALL = 0xffffffffu;

// The sum of the values of this lane and of all lanes before it. All 32 must call it.
__device__ float warp_scan(float value) {
    // your code here
    return value;
}

// What the lane before this one has; 0 in the first. All 32 must call it.
__device__ float from_lane_before(float value) {
    float before = __shfl_up_sync(ALL, value, 1);
    return threadIdx.x % 32 > 0 ? before : 0.0f;
}

// In shared memory: sums: (SUMS), in the order of their channels. Each becomes the sum of all
// before it, with `carry`. By one warp, which gets the sum of all of them, with carry.
__device__ float scan_sums(float* sums, float carry) {
    for (int i = threadIdx.x % 32; i < SUMS; i += 32) {
        // your code here
    }
    return carry;
}

// Each member becomes the sum of those up to it.
__device__ float4 scanned(float4 v) {
    return {v.x, v.x + v.y, v.x + v.y + v.z, v.x + v.y + v.z + v.w};
}

// x, out: (rows, channels). out[r][c] = x[r][0] + … + x[r][c]
// One thread owns every 256th quad of a row. One block owns the row. Changed from `cumsum_serial`:
// lanes read neighbours, and scan together; loads rows * channels floats.
__global__ void __launch_bounds__(THREADS)
    cumsum_rows_kernel(const float* x, float* out, int channels) {
    __shared__ float sums[SUMS];  // of the 128 channels of a warp's 32 quads each
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const float* row = x + size_t(blockIdx.x) * channels;
    float* to = out + size_t(blockIdx.x) * channels;
    auto whole = [=](int c) { return channels % 4 == 0 && c < channels; };
    float carry = 0.0f;  // the sum of all tiles before this one; the first warp knows it
    for (int begin = 0; begin < channels; begin += TILE) {
        int c0 = begin + 4 * threadIdx.x;
        float4 kept[KEPT];
        float before[KEPT];  // the sum of the 32 quads, as far as the lane before this one
#pragma unroll
        for (int i = 0; i < KEPT; i++) {
            kept[i] = load4(row, 1, channels, 0, c0 + i * STEP, whole(c0 + i * STEP));
        }
#pragma unroll
        for (int i = 0; i < KEPT; i++) {
            // your code here
        }
        __syncthreads();  // the sums of all warps are there before the first one scans them
        if (warp == 0) carry = scan_sums(sums, carry);
        __syncthreads();  // they are scanned before anyone adds them
#pragma unroll
        for (int i = 0; i < KEPT; i++) {
            int c = c0 + i * STEP;
            // your code here
        }
        __syncwarp();  // a warp has read its sums before it writes those of the next tile
    }
}

void cumsum_rows(const float* x, float* out, int rows, int channels) {
    cumsum_rows_kernel<<<rows, THREADS>>>(x, out, channels);
}
