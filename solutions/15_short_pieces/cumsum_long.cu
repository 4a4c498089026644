#include "quads.cuh"
#include "reduce.cuh"
#include "scan.cuh"
#include "scratch.cuh"

constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int KEPT = 4;             // quads of a tile that a thread keeps in registers
constexpr int STEP = 4 * THREADS;   // values between two of them
constexpr int TILE = KEPT * STEP;   // values that a block owns
constexpr int SUMS = KEPT * WARPS;  // 32: one for each 32 quads of a tile
constexpr unsigned ALL = 0xffffffffu;
constexpr int NOTHING = 0, OWN = 1, UPTO = 2;  // what is known of a tile: the last sum it has told

// What tiles tell each other, in global memory: a place for each tile.
struct Board {
    int *ticket, *status;
    float *own, *upto;  // the sum of a tile; the sum of all tiles up to it
};

// By one thread: writes a sum, and then says so in the status.
__device__ void tell(float* place, float sum, int* status, int what) {
    // BEGIN SOLUTION
    *place = sum;
    __threadfence();  // the sum is in memory before anyone learns of it
    atomicExch(status, what);
    // END SOLUTION
}

// Waits until a tile has told a sum; which one, its status says.
__device__ int wait_for(int* status) {
    int what = NOTHING;
    // BEGIN SOLUTION
    while ((what = atomicAdd(status, 0)) == NOTHING) {
    }
    __threadfence();  // no sum is read before its status
    // END SOLUTION
    return what;
}

// The sum of all tiles before this one, by a warp: lane i asks the tile i + 1 before it, then the
// one 32 further back, until one knows the sum of all up to it.
__device__ float sum_before(Board board, int tile) {
    int lane = threadIdx.x % 32;
    float sum = 0.0f;
    for (int at = tile - 1 - lane;; at -= 32) {
        int what = at >= 0 ? wait_for(&board.status[at]) : UPTO;  // before the first tile: 0
        float told = at < 0 ? 0.0f : what == UPTO ? board.upto[at] : board.own[at];
        // BEGIN SOLUTION
        unsigned ends = __ballot_sync(ALL, what == UPTO);  // a bit for each lane
        bool counts = ends == 0 || lane <= __ffs(ends) - 1;
        sum += warp_sum(counts ? told : 0.0f);
        if (ends != 0) return sum;
        // STARTER: if (at < tile) return told;  // replace this line: your code here
        // END SOLUTION
    }
}

// x, out: (n). out[i] = x[0] + … + x[i]
// One thread owns every 256th quad of a tile. One block owns a tile of 4096 values: the first that
// nobody has yet.
__global__ void __launch_bounds__(THREADS)
    cumsum_long_kernel(const float* x, float* out, int n, Board board) {
    __shared__ float sums[SUMS];
    __shared__ int ticket;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) ticket = atomicAdd(board.ticket, 1);
    __syncthreads();  // all know which tile is theirs
    int tile = ticket, c0 = tile * TILE + 4 * threadIdx.x;
    float4 kept[KEPT];
    float before[KEPT];  // the sum of the 32 quads, as far as the lane before this one
#pragma unroll
    for (int i = 0, c = c0; i < KEPT; i++, c += STEP) kept[i] = load4(x, 1, n, 0, c, c + 3 < n);
#pragma unroll
    for (int i = 0; i < KEPT; i++) {
        kept[i] = quad_scanned(kept[i]);
        float upto = warp_scan(kept[i].w);
        before[i] = from_lane_before(upto);
        if (lane == 31) sums[i * WARPS + warp] = upto;
    }
    __syncthreads();  // the sums of all warps are there before the first one scans them
    if (warp == 0) {
        float upto = warp_scan(sums[lane]), own = __shfl_sync(ALL, upto, 31);
        if (lane == 0) tell(&board.own[tile], own, &board.status[tile], OWN);
        float earlier = sum_before(board, tile);
        if (lane == 0) tell(&board.upto[tile], earlier + own, &board.status[tile], UPTO);
        sums[lane] = earlier + from_lane_before(upto);
    }
    __syncthreads();  // they are scanned before anyone adds them
#pragma unroll
    for (int i = 0, c = c0; i < KEPT; i++, c += STEP) {
        float more = sums[i * WARPS + warp] + before[i];
        float4 v = {kept[i].x + more, kept[i].y + more, kept[i].z + more, kept[i].w + more};
        store4(out, 1, n, 0, c, v, c + 3 < n);
    }
}

void cumsum_long(const float* x, float* out, int n) {
    int tiles = (n + TILE - 1) / TILE;
    Scratch<int> status(tiles + 1);  // and the ticket
    Scratch<float> sums(2 * tiles);
    cudaMemsetAsync(status.data, 0, (tiles + 1) * sizeof(int));
    Board board = {status.data + tiles, status.data, sums.data, sums.data + tiles};
    cumsum_long_kernel<<<tiles, THREADS>>>(x, out, n, board);
}
