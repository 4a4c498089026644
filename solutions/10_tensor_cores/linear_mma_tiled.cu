#include "halves.cuh"
#include "quads.cuh"
#include "tensor_cores.cuh"

constexpr int BM = 128, BN = 128, BK = 64;           // a block owns BM x BN elements of out,
constexpr int WM = 32, WN = 64;                      // each of its warps WM x WN
constexpr int THREADS = 32 * (BM / WM) * (BN / WN);  // 8 warps, in 4 rows and 2 columns
constexpr int CHUNKS = BK / 8;                       // of 8 halves, 16 bytes, in a tile's row

// Where a chunk of a tile lies, counted in chunks. Eight rows of one chunk lie in eight places of
// a row, and so in all 32 banks.
__device__ int swizzled(int row, int chunk) { return row * CHUNKS + (chunk ^ row % 8); }

// A tile of 128 rows of a matrix (rows, K), from (row0, k) on, as halves. Zeros outside.
__device__ void bring(uint4* tile, const float* matrix, int rows, int K, int row0, int k) {
    bool quads = K % 4 == 0 && aligned(matrix);
    for (int i = threadIdx.x; i < 128 * CHUNKS; i += THREADS) {
        int row = i / CHUNKS, col = k + i % CHUNKS * 8;
        bool inside = quads && row0 + row < rows;
        uint2 left = as_halves(load4(matrix, rows, K, row0 + row, col, inside && col + 4 <= K));
        uint2 right =
            as_halves(load4(matrix, rows, K, row0 + row, col + 4, inside && col + 8 <= K));
        tile[swizzled(row, i % CHUNKS)] = make_uint4(left.x, left.y, right.x, right.y);
    }
}

// Writes the sums of a warp whose elements begin at (row0, col0).
__device__ void store(float* out, const float (&d)[2][8][4], int M, int N, int row0, int col0) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
        for (int j = 0; j < 8; j++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int row = row0 + 16 * i + e / 2 * 8 + lane / 4;
                int col = col0 + 8 * j + lane % 4 * 2 + e % 2;
                if (row < M && col < N) out[row * N + col] = d[i][j][e];
            }
        }
    }
}

// x: (M, K), W: (N, K), out: (M, N), all row-major. out = x * W^T, of elements rounded to halves
// Changed from `linear_mma`: tiles in shared memory; loads M * N * K / 64 floats.
// One warp owns WM x WN elements of out: 2 x 8 products of mma. One block owns a tile BM x BN.
__global__ void __launch_bounds__(THREADS)
    linear_mma_tiled_kernel(const float* x, const float* W, float* out, int M, int N, int K) {
    __shared__ uint4 xs[BM * CHUNKS], Ws[BN * CHUNKS];
    int row0 = blockIdx.x * BM, col0 = blockIdx.y * BN;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int top = warp / (BN / WN) * WM, left = warp % (BN / WN) * WN;
    float d[2][8][4] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        bring(xs, x, M, K, row0, k0);
        bring(Ws, W, N, K, col0, k0);
        __syncthreads();  // the tiles are complete
        for (int k = 0; k < CHUNKS; k += 2) {
            unsigned a[2][4], b[4][4];
            // BEGIN SOLUTION
#pragma unroll
            for (int i = 0; i < 2; i++) {
                load_matrices(a[i], &xs[swizzled(top + 16 * i + lane % 16, k + lane / 16)]);
            }
#pragma unroll
            for (int j = 0; j < 4; j++) {  // 16 columns of out: b of two products
                int row = left + 16 * j + lane / 16 * 8 + lane % 8;
                load_matrices(b[j], &Ws[swizzled(row, k + lane / 8 % 2)]);
            }
#pragma unroll
            for (int i = 0; i < 2; i++) {
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    mma_f16(d[i][j], a[i], {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]});
                }
            }
            // END SOLUTION
        }
        __syncthreads();  // everyone has read the tiles before the next ones overwrite them
    }
    store(out, d, M, N, row0 + top, col0 + left);
}

void linear_mma_tiled(const float* x, const float* W, float* out, int M, int N, int K) {
    dim3 grid((M + BM - 1) / BM, (N + BN - 1) / BN);
    linear_mma_tiled_kernel<<<grid, THREADS>>>(x, W, out, M, N, K);
}
