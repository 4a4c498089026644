#include "sort_key.cuh"

constexpr int WARPS = 4, THREADS = 32 * WARPS, K = 32;
constexpr int AHEAD = 8;  // loads of a lane that are under way together
constexpr unsigned ALL = 0xffffffffu;

// Sorts each run of `run` lanes, largest first, and every second run the other way round. Each must
// first rise and then fall, or the other way round. All 32 lanes must call it.
__device__ Key sort_runs(Key key, int run) {
    int lane = threadIdx.x % 32;
    for (int step = run / 2; step > 0; step /= 2) {
        // your code here
    }
    return key;
}

// The keys of all lanes, largest first. All 32 must call it.
__device__ Key sorted(Key key) {
    for (int run = 2; run <= 32; run *= 2) key = sort_runs(key, run);
    return key;
}

// The 32 largest of both, largest first; best is in that order. All 32 lanes must call it.
__device__ Key merged(Key best, Key more) {
    // your code here
    return best;
}

// x: (rows, channels); values, places: (rows, 32). values[r] = the 32 largest of row r, the largest
// first; places[r] = where they stand. A shorter row is filled up with -INFINITY, at -1
// One thread owns every 32nd element of a row. One warp owns the row. Changed from `topk_rounds`:
// the largest so far stay in registers; loads rows * channels + 32 * rows floats.
__global__ void __launch_bounds__(THREADS)
    topk_rows_kernel(const float* x, float* values, long long* places, int rows, int channels) {
    __shared__ Key queues[WARPS][64];  // of each warp: keys above its bar, yet to be merged
    int r = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (r >= rows) return;  // all lanes of a warp, or none
    const float* row = x + size_t(r) * channels;
    Key* queue = queues[threadIdx.x / 32];
    Key best = 0;     // of the 32 largest so far: lane 0 has the largest
    Key bar = 0;      // the smallest of them
    int waiting = 0;  // keys in the queue
    for (int begin = 0; begin < channels; begin += 32 * AHEAD) {
        int c0 = begin + lane;
        float kept[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            int c = c0 + 32 * i;
            kept[i] = c < channels ? row[c] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            int c = c0 + 32 * i;
            Key key = c < channels ? key_of(kept[i], c) : 0;
            // your code here
            __syncwarp();  // keys are in the queue before other lanes read them
            if (waiting >= 32) {
                // your code here
                __syncwarp();  // they are read before others take their places
            }
        }
    }
    best = merged(best, lane < waiting ? queue[lane] : 0);
    int place = place_of(best);
    values[r * K + lane] = place >= 0 ? row[place] : -INFINITY;
    places[r * K + lane] = place;
}

void topk_rows(const float* x, float* values, long long* places, int rows, int channels) {
    topk_rows_kernel<<<(rows + WARPS - 1) / WARPS, THREADS>>>(x, values, places, rows, channels);
}
