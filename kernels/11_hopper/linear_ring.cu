#include "aligned_rows.cuh"
#include "hopper.cuh"
#include "warpgroup.cuh"

constexpr int BM = 64, BN = 128, BK = 32;  // a block owns BM x BN elements of out
constexpr int THREADS = 128;               // four warps that multiply together
constexpr int STAGES = 4;                  // pairs of tiles: one in use, others on their way

struct Stage {
    float x[BM][BK], W[BN][BK];
};

// x: (M, K), W: (N, K), by their maps; out: (M, N), all row-major. out = x * W^T, of elements
// rounded to 10 bits of fraction
// One thread owns 64 elements of out: two rows of a warp's 16, every fourth pair of columns. One
// block owns a tile BM x BN; its first thread brings tiles of x and W, STAGES rounds ahead.
__global__ void __launch_bounds__(THREADS)
    linear_ring_kernel(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap W,
                       float* out, int M, int N, int K) {
    extern __shared__ __align__(1024) Stage ring[];
    __shared__ Barrier full[STAGES];
    int row0 = blockIdx.x * BM, col0 = blockIdx.y * BN, rounds = (K + BK - 1) / BK;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) barrier_init(&full[s], 1);
        fence_barriers();
    }
    __syncthreads();  // the barriers are there before anyone waits at them
    auto bring = [&](int round) {
        if (threadIdx.x > 0 || round >= rounds) return;
        int s = round % STAGES;
        barrier_arrive_expect(&full[s], sizeof(Stage));
        load_tile(ring[s].x, &x, round * BK, row0, &full[s]);
        load_tile(ring[s].W, &W, round * BK, col0, &full[s]);
    };
    // your code here
    float sums[BN / 2] = {};
    for (int round = 0; round < rounds; round++) {
        // your code here
    }
    store(out, M, N, Patch(row0, col0), sums);
}

void linear_ring(const float* x, const float* W, float* out, int M, int N, int K) {
    AlignedRows xs(x, M, K), Ws(W, N, K);
    int bytes = STAGES * sizeof(Stage);
    cudaFuncSetAttribute(linear_ring_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    dim3 grid((M + BM - 1) / BM, (N + BN - 1) / BN);
    linear_ring_kernel<<<grid, THREADS, bytes>>>(make_map(xs.data, M, xs.cols, BM),
                                                 make_map(Ws.data, N, Ws.cols, BN), out, M, N, K);
}
