constexpr int TILE = 32, STEP = 8;  // a block has 32 x 8 threads, and brings its tile in 4 steps

// x: (rows, cols), out: (cols, rows), both row-major. out[c, r] = x[r, c]
// One thread owns 4 elements of out. One block owns a TILE x TILE tile of x, and so of out.
__global__ void transpose_kernel(const float* x, float* out, int rows, int cols) {
    __shared__ float tile[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;  // where the tile begins in x
    for (int i = 0; i < TILE; i += STEP) {
        int r = ty + i;  // a row of the tile
        // your code here: bring
    }
    // your code here: write
}

void transpose(const float* x, float* out, int rows, int cols) {
    dim3 block(TILE, STEP);
    dim3 grid((cols + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
    transpose_kernel<<<grid, block>>>(x, out, rows, cols);
}
