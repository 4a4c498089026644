#include "aligned_rows.cuh"
#include "hopper.cuh"

constexpr int BM = 64, BK = 32;  // a tile: BM rows of BK floats, 128 bytes each
constexpr int THREADS = 128;

// x: (M, K), by its map; out: (M, K), row-major. out = x
// One thread owns every 128th element of the tile. One block owns a tile BM x BK; its first thread
// asks for it.
__global__ void __launch_bounds__(THREADS)
    fetch_tile_kernel(const __grid_constant__ CUtensorMap x, float* out, int M, int K) {
    __shared__ alignas(1024) float tile[BM][BK];
    __shared__ Barrier full;
    int row0 = blockIdx.x * BM, col0 = blockIdx.y * BK;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);  // a phase needs one arrival
        fence_barriers();        // the copy engine sees that
    }
    __syncthreads();  // the barrier is there before anyone waits at it
    // BEGIN SOLUTION
    if (threadIdx.x == 0) {
        barrier_arrive_expect(&full, sizeof(tile));
        load_tile(tile, &x, col0, row0, &full);
    }
    barrier_wait(&full, 0);  // all bytes of the tile are there
    // END SOLUTION
    for (int i = threadIdx.x; i < BM * BK; i += THREADS) {
        int r = i / BK, c = i % BK, row = row0 + r, col = col0 + c;
        // BEGIN SOLUTION
        int chunk = c / 4 ^ r % 8;  // where these 16 bytes of row r lie
        if (row < M && col < K) out[size_t(row) * K + col] = tile[r][4 * chunk + c % 4];
        // END SOLUTION
    }
}

void fetch_tile(const float* x, float* out, int M, int K) {
    AlignedRows xs(x, M, K);
    dim3 grid((M + BM - 1) / BM, (K + BK - 1) / BK);
    auto map = make_map(xs.data, M, xs.cols, BM, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
    fetch_tile_kernel<<<grid, THREADS>>>(map, out, M, K);
}
