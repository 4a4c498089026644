// C = A B^T by pairs of blocks: both need the same tile of B, of which each fetches half for both.
// Held against sums in double.
#include "../../kernels/include/hopper.cuh"
#include "sums.cuh"

constexpr int ROWS = 64, COLS = 64, STAGES = 2, WIDE = 64;  // WIDE: halves in a row of a tile

struct Stage {
    __half a[ROWS][WIDE], b[COLS][WIDE];
};

__global__ void __cluster_dims__(1, 2)
    gemm(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c,
         int m, int n, int depth) {
    __shared__ __align__(1024) Stage stages[STAGES];
    __shared__ Barrier full[STAGES], empty[STAGES];
    const int row = blockIdx.y * ROWS, col = blockIdx.x * COLS, rank = cluster_rank();
    const int tiles = (depth + WIDE - 1) / WIDE, t = threadIdx.x;
    if (t == 0) {
        for (int s = 0; s < STAGES; ++s) {
            barrier_init(&full[s], 1);
            barrier_init(&empty[s], 2);  // of both blocks
        }
        fence_barriers();
    }
    cluster_sync();
    if (t >= 128) {
        for (int i = 0; i < tiles && t == 128; ++i) {
            const int s = i % STAGES;
            barrier_wait(&empty[s], i / STAGES % 2 ^ 1);
            barrier_arrive_expect(&full[s], sizeof(Stage));
            load_tile(stages[s].a, &a, i * WIDE, row, &full[s]);
            load_tile_multicast(stages[s].b[rank * 32], &b, i * WIDE, col + rank * 32, &full[s], 3);
        }
    } else {
        float sums[32];
        for (int i = 0; i < tiles; ++i) {
            const int s = i % STAGES;
            barrier_wait(&full[s], i / STAGES % 2);
            wgmma_fence();
            for (int k = 0; k < WIDE; k += 16)
                wgmma_f16(sums, make_descriptor(&stages[s].a[0][k]), make_descriptor(&stages[s].b[0][k]), i || k);
            wgmma_commit();
            wgmma_wait<0>();
            if (t < 2) barrier_arrive_at(&empty[s], t);
        }
        const int warp = t / 32, lane = t % 32;
        for (int i = 0; i < 32; ++i) {
            const int r = row + 16 * warp + 8 * (i / 2 % 2) + lane / 4;
            const int j = col + 8 * (i / 4) + lane % 4 * 2 + i % 2;
            if (r < m && j < n) c[size_t(r) * n + j] = sums[i];
        }
    }
    cluster_sync();
}

int main() {
    const int m = 200, n = 72, k = 264;
    const std::vector<__half> a = some<__half>(m * k, 1), b = some<__half>(n * k, 2);
    __half *da = to_device(a), *db = to_device(b);
    float* dc = to_device(std::vector<float>(m * n, NAN));
    auto kernel = gemm;  // it has clusters by this name, too
    kernel<<<dim3((n + COLS - 1) / COLS, 4), 160>>>(make_map(da, m, k, ROWS),
                                                    make_map(db, n, k, 32), dc, m, n, k);
    CHECK(cudaDeviceSynchronize());
    const int count = count_wrong(a, b, to_host(dc, m * n), m, n, k);
    printf("clusters: %d wrong\n", count);
    return count != 0;
}
