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
constexpr unsigned NOTHING = 0, OWN = 1, UPTO = 2;  // what is known of a tile

// What a tile has told last, in one word: which sum in its upper half, the sum in its lower one.
using Told = unsigned long long;
__device__ unsigned what_of(Told told) { return told >> 32; }
__device__ float sum_of(Told told) { return __uint_as_float(unsigned(told)); }

// By one thread. A word arrives whole, so there is no order of two to keep: no fence, no waiting.
__device__ void tell(Told* place, float sum, unsigned what) {
    atomicExch(place, Told(what) << 32 | __float_as_uint(sum));
}

// Waits until a tile has told a sum. It comes with its status.
__device__ Told wait_for(Told* place) {
    Told told;
    do {
        told = atomicAdd(place, Told(0));
    } while (what_of(told) == NOTHING);
    return told;
}

// The sum of all tiles before this one, by a warp: lane i asks the tile i + 1 before it, then the
// one 32 further back, until one knows the sum of all up to it.
__device__ float sum_before(Told* board, int tile) {
    int lane = threadIdx.x % 32;
    float sum = 0.0f;
    for (int at = tile - 1 - lane;; at -= 32) {
        Told told = at >= 0 ? wait_for(&board[at]) : Told(UPTO) << 32;  // before the first tile: 0
        unsigned ends = __ballot_sync(ALL, what_of(told) == UPTO);      // a bit for each lane
        bool counts = ends == 0 || lane <= __ffs(ends) - 1;
        sum += warp_sum(counts ? sum_of(told) : 0.0f);
        if (ends != 0) return sum;
    }
}

// x, out: (n). out[i] = x[0] + … + x[i]; board: (tiles), in global memory, all 0 at first
// One thread owns every 256th quad of a tile. One block owns a tile of 4096 values: the first that
// nobody has yet. Changed from `cumsum_long`: a tile's sum and status are one word, read by one
// trip to the L2 cache, where status, fence and sum take three; loads n floats.
__global__ void __launch_bounds__(THREADS)
    cumsum_long_word_kernel(const float* x, float* out, int n, Told* board, int* next) {
    __shared__ float sums[SUMS];
    __shared__ int ticket;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) ticket = atomicAdd(next, 1);
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
        if (lane == 0) tell(&board[tile], own, OWN);
        float earlier = sum_before(board, tile);
        if (lane == 0) tell(&board[tile], earlier + own, UPTO);
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

void cumsum_long_word(const float* x, float* out, int n) {
    int tiles = (n + TILE - 1) / TILE;
    Scratch<Told> board(tiles + 1);  // and the ticket
    cudaMemsetAsync(board.data, 0, (tiles + 1) * sizeof(Told));
    int* next = reinterpret_cast<int*>(board.data + tiles);
    cumsum_long_word_kernel<<<tiles, THREADS>>>(x, out, n, board.data, next);
}
