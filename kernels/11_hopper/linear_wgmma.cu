#include "aligned_rows.cuh"
#include "hopper.cuh"

constexpr int BM = 64, BN = 128, BK = 32;  // a block owns BM x BN elements of out
constexpr int THREADS = 128;               // four warps that multiply together
constexpr int TILES = (BM + BN) * BK * 4;  // bytes of a tile of x and one of W

// x: (M, K), W: (N, K), by their maps; out: (M, N), all row-major. out = x * W^T, of elements
// rounded to 10 bits of fraction
// One thread owns 64 elements of out: two rows of a warp's 16, every fourth pair of columns. One
// block owns a tile BM x BN; its first thread brings tiles of x and W.
__global__ void __launch_bounds__(THREADS)
    linear_wgmma_kernel(const __grid_constant__ CUtensorMap x,
                        const __grid_constant__ CUtensorMap W, float* out, int M, int N, int K) {
    __shared__ alignas(1024) float xs[BM][BK], Ws[BN][BK];
    __shared__ Barrier full;
    int row0 = blockIdx.x * BM, col0 = blockIdx.y * BN;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        fence_barriers();
    }
    __syncthreads();  // the barrier is there before anyone waits at it
    float sums[BN / 2] = {};
    for (int round = 0; round * BK < K; round++) {
        if (threadIdx.x == 0) {
            barrier_arrive(&full);  // replace: announce TILES bytes, ask for both tiles
        }
        barrier_wait(&full, round % 2);  // all bytes of both tiles are there
        // your code here
        __syncthreads();  // all warps have multiplied before the next tiles overwrite these
    }
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < BN / 2; i++) {
        // your code here
    }
}

void linear_wgmma(const float* x, const float* W, float* out, int M, int N, int K) {
    AlignedRows xs(x, M, K), Ws(W, N, K);
    dim3 grid((M + BM - 1) / BM, (N + BN - 1) / BN);
    linear_wgmma_kernel<<<grid, THREADS>>>(make_map(xs.data, M, xs.cols, BM),
                                           make_map(Ws.data, N, Ws.cols, BN), out, M, N, K);
}
