// reject: gate
// Fault: each warp walks along the whole row
constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;

// The smaller of two; NaN if either is NaN, as in PyTorch.
__device__ float smaller(float a, float b) { return a < b || isnan(a) ? a : b; }

// The smallest value of all 32 lanes, in every lane.
__device__ float warp_min(float value) {
    for (int step = 16; step > 0; step /= 2) {
        value = smaller(value, __shfl_xor_sync(0xffffffff, value, step));
    }
    return value;
}

// x: (rows, channels), out: (rows). out[i] = the smallest element of row i
// One thread owns every THREADS-th element of a row. One block owns one row.
__global__ void row_min_kernel(const float* x, float* out, int channels) {
    __shared__ float smallest[WARPS];  // one of each warp
    int t = threadIdx.x;
    int warp = t / 32, lane = t % 32;
    const float* row = x + blockIdx.x * channels;
    float value = INFINITY;
    for (int c = lane; c < channels; c += 32) {
        value = smaller(value, row[c]);
    }
    value = warp_min(value);
    if (lane == 0) {
        smallest[warp] = value;
    }
    __syncthreads();  // the value of every warp is there before the first warp reads them
    if (warp == 0) {
        value = warp_min(lane < WARPS ? smallest[lane] : INFINITY);
    }
    if (t == 0) {
        out[blockIdx.x] = value;
    }
}

void row_min(const float* x, float* out, int rows, int channels) {
    row_min_kernel<<<rows, THREADS>>>(x, out, channels);
}
