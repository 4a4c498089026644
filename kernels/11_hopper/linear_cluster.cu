#include "aligned_rows.cuh"
#include "hopper.cuh"
#include "warpgroup.cuh"

constexpr int BM = 128, BN = 256, BK = 32;      // a block owns BM x BN elements of out
constexpr int CLUSTER = 2;                      // blocks that need the same tiles of W
constexpr int CONSUMERS = 2;                    // warpgroups that multiply, 64 rows of BM each
constexpr int THREADS = 128 * (CONSUMERS + 1);  // and one that brings tiles
constexpr int STAGES = 4;                       // pairs of tiles: some in use, others on their way

struct Stage {
    float x[BM][BK], W[BN][BK];
};

// full[s]: the tiles of stage s have come; empty[s]: all consumers of the cluster are done with
// them. All threads of the cluster must call it.
__device__ void prepare(Barrier* full, Barrier* empty) {
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(&full[s], 1);
            barrier_init(&empty[s], CLUSTER * CONSUMERS);
        }
        fence_barriers();
    }
    cluster_sync();  // the barriers of both blocks are there before anyone arrives at them
}

// x: (M, K), W: (N, K), by their maps; out: (M, N), all row-major. out = x * W^T, of elements
// rounded to 10 bits of fraction
// One thread owns 128 elements of out, if its warpgroup multiplies. One block owns a tile BM x BN;
// its last warpgroup brings its tile of x, and half of W's tile for both blocks of the cluster.
__global__ void __cluster_dims__(CLUSTER) __launch_bounds__(THREADS, 1)
    linear_cluster_kernel(const __grid_constant__ CUtensorMap x,
                          const __grid_constant__ CUtensorMap W, float* out, int M, int N, int K) {
    extern __shared__ __align__(1024) Stage ring[];
    __shared__ Barrier full[STAGES], empty[STAGES];
    int row0 = blockIdx.x * BM, col0 = blockIdx.y * BN, rounds = (K + BK - 1) / BK;
    int group = threadIdx.x / 128, thread = threadIdx.x % 128, half = cluster_rank() * BN / CLUSTER;
    prepare(full, empty);
    if (group == CONSUMERS) {
        fewer_registers<40>();
        for (int round = 0; round < rounds && thread == 0; round++) {
            int s = round % STAGES;
            barrier_wait(&empty[s], round / STAGES % 2 ^ 1);  // readers in both blocks let go of it
            barrier_arrive_expect(&full[s], sizeof(Stage));
            load_tile(ring[s].x, &x, round * BK, row0, &full[s]);
            load_tile_multicast(ring[s].W[half], &W, round * BK, col0 + half, &full[s], 3);
        }
    } else {
        more_registers<232>();
        float sums[BN / 2] = {};
        for (int round = 0; round < rounds; round++) {
            int s = round % STAGES, before = (round + STAGES - 1) % STAGES;
            barrier_wait(&full[s], round / STAGES % 2);  // all bytes of this stage are there
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < BK; k += 8) {
                wgmma_tf32(sums, make_descriptor(&ring[s].x[64 * group][k]),
                           make_descriptor(&ring[s].W[0][k]), 1);
            }
            wgmma_commit();
            wgmma_wait<1>();  // the products of the round before are done: both blocks may know
            if (round > 0 && thread < CLUSTER) barrier_arrive_at(&empty[before], thread);
        }
        wgmma_wait<0>();
        store(out, M, N, Patch(row0 + 64 * group, col0), sums);
    }
    cluster_sync();  // nobody leaves while the other block may write to it, or arrive there
}

void linear_cluster(const float* x, const float* W, float* out, int M, int N, int K) {
    AlignedRows xs(x, M, K), Ws(W, N, K);
    int bytes = STAGES * sizeof(Stage);
    cudaFuncSetAttribute(linear_cluster_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    dim3 grid((M + CLUSTER * BM - 1) / (CLUSTER * BM) * CLUSTER, (N + BN - 1) / BN);
    linear_cluster_kernel<<<grid, THREADS, bytes>>>(make_map(xs.data, M, xs.cols, BM),
                                                    make_map(Ws.data, N, Ws.cols, BN / CLUSTER),
                                                    out, M, N, K);
}
