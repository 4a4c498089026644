#include "aligned_rows.cuh"
#include "hopper.cuh"
#include "warpgroup.cuh"

constexpr int BM = 128, BN = 256, BK = 32;      // a block owns BM x BN elements of out
constexpr int CONSUMERS = 2;                    // warpgroups that multiply, 64 rows of BM each
constexpr int THREADS = 128 * (CONSUMERS + 1);  // and one that brings tiles
constexpr int STAGES = 4;                       // pairs of tiles: some in use, others on their way

struct Stage {
    float x[BM][BK], W[BN][BK];
};

// full[s]: the tiles of stage s have come; empty[s]: all consumers are done with them. All threads
// of the block must call it.
__device__ void prepare(Barrier* full, Barrier* empty) {
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(&full[s], 1);
            barrier_init(&empty[s], CONSUMERS);
        }
        fence_barriers();
    }
    __syncthreads();  // the barriers are there before anyone waits at them
}

// x: (M, K), W: (N, K), by their maps; out: (M, N), all row-major. out = x * W^T, of elements
// rounded to 10 bits of fraction
// One thread owns 128 elements of out, if its warpgroup multiplies: two rows of its warp's 16,
// every fourth pair of columns. One block owns a tile BM x BN; one thread of the last warpgroup
// brings tiles of x and W.
__global__ void __launch_bounds__(THREADS, 1)
    linear_specialised_kernel(const __grid_constant__ CUtensorMap x,
                              const __grid_constant__ CUtensorMap W, float* out, int M, int N,
                              int K) {
    extern __shared__ __align__(1024) Stage ring[];
    __shared__ Barrier full[STAGES], empty[STAGES];
    int row0 = blockIdx.x * BM, col0 = blockIdx.y * BN, rounds = (K + BK - 1) / BK;
    int group = threadIdx.x / 128, thread = threadIdx.x % 128;
    prepare(full, empty);
    if (group == CONSUMERS) {
        fewer_registers<40>();
        // BEGIN SOLUTION
        for (int round = 0; round < rounds && thread == 0; round++) {
            int s = round % STAGES;
            barrier_wait(&empty[s], round / STAGES % 2 ^ 1);  // its readers have let go of it
            barrier_arrive_expect(&full[s], sizeof(Stage));
            load_tile(ring[s].x, &x, round * BK, row0, &full[s]);
            load_tile(ring[s].W, &W, round * BK, col0, &full[s]);
        }
        // END SOLUTION
        return;
    }
    more_registers<232>();
    float sums[BN / 2] = {};
    // BEGIN SOLUTION
    for (int round = 0; round < rounds; round++) {
        int s = round % STAGES;
        barrier_wait(&full[s], round / STAGES % 2);  // all bytes of this stage's tiles are there
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < BK; k += 8) {
            wgmma_tf32(sums, make_descriptor(&ring[s].x[64 * group][k]),
                       make_descriptor(&ring[s].W[0][k]), 1);
        }
        wgmma_commit();
        wgmma_wait<1>();  // the products of the round before are done, and its stage is free
        if (round > 0 && thread == 0) barrier_arrive(&empty[(round - 1) % STAGES]);
    }
    wgmma_wait<0>();
    // END SOLUTION
    store(out, M, N, Patch(row0 + 64 * group, col0), sums);
}

void linear_specialised(const float* x, const float* W, float* out, int M, int N, int K) {
    AlignedRows xs(x, M, K), Ws(W, N, K);
    int bytes = STAGES * sizeof(Stage);
    auto kernel = linear_specialised_kernel;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    dim3 grid((M + BM - 1) / BM, (N + BN - 1) / BN);
    kernel<<<grid, THREADS, bytes>>>(make_map(xs.data, M, xs.cols, BM),
                                     make_map(Ws.data, N, Ws.cols, BN), out, M, N, K);
}
