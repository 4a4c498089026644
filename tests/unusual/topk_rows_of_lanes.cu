// topk_rows: passed
// as in Faiss: each lane keeps two keys above the bar in registers, and the warp merges all 64 once
// a lane has no room; quads where rows begin at multiples of 16 bytes; a warp walks over rows
#include "sort_key.cuh"

constexpr unsigned ALL = 0xffffffffu;

__device__ Key sort_runs(Key key, int run) {
    int lane = threadIdx.x % 32;
    for (int step = run / 2; step > 0; step /= 2) {
        Key other = __shfl_xor_sync(ALL, key, step);
        bool larger = ((lane & step) == 0) == ((lane & run) == 0);
        key = larger ? max(key, other) : min(key, other);
    }
    return key;
}

__device__ Key sorted(Key key) {
    for (int run = 2; run <= 32; run *= 2) key = sort_runs(key, run);
    return key;
}

__device__ Key merged(Key best, Key more) {
    more = __shfl_sync(ALL, more, 31 - threadIdx.x % 32);
    return sort_runs(max(best, more), 32);
}

struct Largest {
    Key best = 0, bar = 0, first = 0, second = 0;  // the last two: what this lane has for a merge

    __device__ void merge() {
        best = merged(best, sorted(first));
        if (__any_sync(ALL, second != 0)) best = merged(best, sorted(second));
        bar = __shfl_sync(ALL, best, 31);
        first = second = 0;
    }
    __device__ void add(Key key) {
        if (key > bar) {
            second = first;
            first = key;
        }
        if (__any_sync(ALL, second != 0)) merge();
    }
};

__global__ void topk_rows_kernel(const float* x, float* values, long long* places, int rows,
                                 int channels) {
    int lane = threadIdx.x % 32, warps = gridDim.x * blockDim.x / 32;
    for (int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32; r < rows; r += warps) {
        const float* row = x + size_t(r) * channels;
        int whole = channels % 4 == 0 ? channels / 4 : 0;
        Largest largest;
        for (int begin = 0; begin < whole; begin += 32) {
            int i = begin + lane;
            float4 four = {};
            if (i < whole) four = reinterpret_cast<const float4*>(row)[i];
            largest.add(i < whole ? key_of(four.x, 4 * i) : 0);
            largest.add(i < whole ? key_of(four.y, 4 * i + 1) : 0);
            largest.add(i < whole ? key_of(four.z, 4 * i + 2) : 0);
            largest.add(i < whole ? key_of(four.w, 4 * i + 3) : 0);
        }
        for (int begin = 4 * whole; begin < channels; begin += 32) {
            int c = begin + lane;
            largest.add(c < channels ? key_of(row[c], c) : 0);
        }
        largest.merge();
        int place = place_of(largest.best);
        values[r * 32 + lane] = place < 0 ? -INFINITY : row[place];
        places[r * 32 + lane] = place;
    }
}

void topk_rows(const float* x, float* values, long long* places, int rows, int channels) {
    topk_rows_kernel<<<min((rows + 1) / 2, 528), 64>>>(x, values, places, rows, channels);
}
