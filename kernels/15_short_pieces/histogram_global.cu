constexpr int THREADS = 256, BINS = 256;

// x: (n), counts: (256). counts[b] = how many values lie in bin b: of [0, 1], cut into 256 parts
// One thread owns every (256 * blocks)-th value. One block owns 256 neighbours of them at a time.
__global__ void histogram_global_kernel(const float* x, int* counts, int n) {
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS) {
        if (x[i] >= 0.0f && x[i] <= 1.0f) {  // false for a NaN
            int bin = min(int(x[i] * BINS), BINS - 1);
            atomicAdd(&counts[bin], 1);
        }
    }
}

// counts: (256). counts[b] = 0, by one block
__global__ void clear_kernel(int* counts) { counts[threadIdx.x] = 0; }

void histogram_global(const float* x, int* counts, int n, int blocks) {
    clear_kernel<<<1, BINS>>>(counts);
    histogram_global_kernel<<<blocks, THREADS>>>(x, counts, n);
}
