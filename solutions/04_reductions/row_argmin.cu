constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;

struct Entry {  // an element of a row, and where it stands
    float value;
    int column;
};

// Whichever PyTorch's argmin prefers: NaN, then the smaller value, then the smaller column.
__device__ Entry first(Entry a, Entry b) {
    // BEGIN SOLUTION
    bool same = a.value == b.value || (isnan(a.value) && isnan(b.value));
    bool less = a.value < b.value || (isnan(a.value) && !isnan(b.value));
    return less || (same && a.column < b.column) ? a : b;
    // STARTER: return a;  // your code here
    // END SOLUTION
}

// The first of all 32 lanes, in every lane.
__device__ Entry warp_first(Entry mine) {
    // BEGIN SOLUTION
    for (int step = 16; step > 0; step /= 2) {
        Entry other;
        other.value = __shfl_xor_sync(0xffffffff, mine.value, step);
        other.column = __shfl_xor_sync(0xffffffff, mine.column, step);
        mine = first(mine, other);
    }
    // END SOLUTION
    return mine;
}

// x: (rows, channels), out: (rows). out[i] = the column of the smallest element of row i
// One thread owns every THREADS-th element of a row. One block owns one row.
__global__ void row_argmin_kernel(const float* x, long long* out, int channels) {
    __shared__ float values[WARPS];  // what each warp has found,
    __shared__ int columns[WARPS];   // and where
    int t = threadIdx.x;
    int warp = t / 32, lane = t % 32;
    const float* row = x + blockIdx.x * channels;
    Entry nothing = {INFINITY, channels};  // every element comes before that
    Entry mine = nothing;
    // BEGIN SOLUTION
    for (int c = t; c < channels; c += THREADS) {
        mine = first(mine, {row[c], c});
    }
    mine = warp_first(mine);
    if (lane == 0) {
        values[warp] = mine.value;
        columns[warp] = mine.column;
    }
    __syncthreads();  // what every warp found is there before the first warp reads it
    if (warp == 0) {
        if (lane < WARPS) {
            mine = {values[lane], columns[lane]};
        } else {
            mine = nothing;
        }
        mine = warp_first(mine);
    }
    // END SOLUTION
    if (t == 0) {
        out[blockIdx.x] = mine.column;
    }
}

void row_argmin(const float* x, long long* out, int rows, int channels) {
    row_argmin_kernel<<<rows, THREADS>>>(x, out, channels);
}
