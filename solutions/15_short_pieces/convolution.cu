#include "quads.cuh"

constexpr int K = 7, HALF = K / 2;              // the window has K x K places
constexpr int THREADS = 256;                    // 8 warps
constexpr int ROWS = 8;                         // of out, that a thread owns, four columns each
constexpr int BH = 8 * ROWS, BW = 4 * 32;       // rows and columns of out that a block owns
constexpr int TH = BH + 2 * HALF;               // rows of its tile of x: those, and a halo
constexpr int TW = BW + 2 * 4, QUADS = TW / 4;  // columns of the tile: a quad more at each side

// Global -> shared memory, by the whole block: the tile whose element (0, 0) is (row0 - 3, col0 -
// 4) of the image. What lies outside of the image is 0.
__device__ void load_tile(const float* image, float (&tile)[TH][TW], int height, int width,
                          int row0, int col0) {
    for (int i = threadIdx.x; i < TH * QUADS; i += THREADS) {
        // BEGIN SOLUTION
        int y = i / QUADS, x = i % QUADS * 4;  // in the tile
        int r = row0 - HALF + y, c = col0 - 4 + x;
        float4 v = {0.0f, 0.0f, 0.0f, 0.0f};
        if (r >= 0 && r < height && c >= 0 && c < width) {
            v = load4(image, height, width, r, c, width % 4 == 0);
        }
        quad(&tile[y][x]) = v;
        // END SOLUTION
    }
}

// Adds to sums what row r of the thread's part of the tile has for them: v has four columns of out,
// and four more at each side. w: (7, 7)
__device__ void add_row(float (&sums)[ROWS][4], const float* w, const float (&v)[12], int r) {
#pragma unroll
    for (int dy = 0; dy < K; dy++) {
        // For no row of the thread's.
        if (r - dy < 0 || r - dy >= ROWS) continue;
        // BEGIN SOLUTION
#pragma unroll
        for (int dx = 0; dx < K; dx++) {
#pragma unroll
            for (int i = 0; i < 4; i++) sums[r - dy][i] += w[dy * K + dx] * v[i + dx + 1];
        }
        // END SOLUTION
    }
}

// x, out: (images, height, width), w: (7, 7). out[n][r][c] = the sum of w[dy][dx] * x[n][r + dy -
// 3][c + dx - 3], without what lies outside of the image
// One thread owns 8 rows x 4 columns of out. One block owns 64 x 128 of an image. Changed from
// `convolution_naive`: a tile in shared memory, sums in registers; 91 * images * height * width /
// 1024 shared requests.
__global__ void __launch_bounds__(THREADS, 2)
    convolution_kernel(const float* x, const float* w, float* out, int height, int width) {
    __shared__ alignas(16) float tile[TH][TW];
    __shared__ float window[K * K];
    int lane = threadIdx.x % 32, first = threadIdx.x / 32 * ROWS;  // row of the tile
    int row0 = blockIdx.y * BH, col0 = blockIdx.x * BW;
    size_t image = size_t(blockIdx.z) * height * width;
    load_tile(x + image, tile, height, width, row0, col0);
    if (threadIdx.x < K * K) window[threadIdx.x] = w[threadIdx.x];
    __syncthreads();  // tile and window are there before anyone reads them
    float weights[K * K], sums[ROWS][4] = {};
#pragma unroll
    for (int i = 0; i < K * K; i++) weights[i] = window[i];
#pragma unroll
    for (int r = 0; r < ROWS + 2 * HALF; r++) {
        alignas(16) float v[12];
#pragma unroll
        for (int q = 0; q < 3; q++) quad(&v[4 * q]) = quad(&tile[first + r][4 * (lane + q)]);
        add_row(sums, weights, v, r);
    }
    int row = row0 + first, col = col0 + 4 * lane;
    bool whole = width % 4 == 0 && col < width;
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        float4 four = {sums[i][0], sums[i][1], sums[i][2], sums[i][3]};
        store4(out + image, height, width, row + i, col, four, whole && row + i < height);
    }
}

void convolution(const float* x, const float* w, float* out, int images, int height, int width) {
    dim3 grid((width + BW - 1) / BW, (height + BH - 1) / BH, images);
    convolution_kernel<<<grid, THREADS>>>(x, w, out, height, width);
}
