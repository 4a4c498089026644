#include "sort_key.cuh"

constexpr int WARPS = 4, THREADS = 32 * WARPS, K = 32;

// x: (rows, channels); values, places: (rows, 32). values[r] = the 32 largest of row r, the largest
// first; places[r] = where they stand. A shorter row is filled up with -INFINITY, at -1
// One thread owns every 32nd element of a row. One warp owns the row, and finds in each round the
// largest element below that of the round before.
__global__ void topk_rounds_kernel(const float* x, float* values, long long* places, int rows,
                                   int channels) {
    int r = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (r >= rows) return;  // all lanes of a warp, or none
    const float* row = x + size_t(r) * channels;
    Key last = 0;
    for (int j = 0; j < K; j++) {
        Key best = 0;
        for (int c = lane; c < channels; c += 32) {
            Key key = key_of(row[c], c);
            if (j == 0 || key < last) best = max(best, key);
        }
        for (int step = 16; step > 0; step /= 2) {
            best = max(best, __shfl_xor_sync(0xffffffffu, best, step));
        }
        last = best;
        int place = place_of(best);
        if (lane == 0) {
            values[r * K + j] = place >= 0 ? row[place] : -INFINITY;
            places[r * K + j] = place;
        }
    }
}

void topk_rounds(const float* x, float* values, long long* places, int rows, int channels) {
    topk_rounds_kernel<<<(rows + WARPS - 1) / WARPS, THREADS>>>(x, values, places, rows, channels);
}
