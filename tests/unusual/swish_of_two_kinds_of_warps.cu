// swish: passed
// four warps load a tile while four others compute the one before it
constexpr int HALF = 128, TILES = 4;

__global__ void swish_kernel(const float* x, float* out, int n) {
    __shared__ float tiles[2][HALF];
    int t = threadIdx.x % HALF, first = blockIdx.x * TILES * HALF + t;
    bool loads = threadIdx.x < HALF;
    for (int k = 0; k <= TILES; k++) {
        int now = first + k * HALF, before = now - HALF;
        if (loads && k < TILES && now < n) tiles[k % 2][t] = x[now];
        if (!loads && k > 0 && before < n) {
            float v = tiles[(k - 1) % 2][t];
            out[before] = v / (1.0f + expf(-v));
        }
        __syncthreads();
    }
}

void swish(const float* x, float* out, int n) {
    int blocks = (n + TILES * HALF - 1) / (TILES * HALF);
    swish_kernel<<<blocks, 2 * HALF>>>(x, out, n);
}
