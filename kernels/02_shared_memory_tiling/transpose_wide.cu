constexpr int TILE = 64, LANES = 32, STEP = 16;  // a block has 32 x 16 threads

// x: (rows, cols), out: (cols, rows), both row-major. out[c, r] = x[r, c]
// One thread owns 8 elements of out. One block owns a TILE x TILE tile of x, and so of out. Changed
// from `transpose`: rows of a tile have 256 bytes, and neighbouring blocks write neighbouring parts
// of rows; loads rows * cols floats.
__global__ void __launch_bounds__(LANES* STEP)
    transpose_wide_kernel(const float* x, float* out, int rows, int cols) {
    __shared__ float tile[TILE][TILE + 1];  // + 1: the elements of a column lie in 32 banks
    int row0 = blockIdx.x * TILE, col0 = blockIdx.y * TILE;  // where the tile begins in x
    for (int i = 0; i < TILE; i += STEP) {
        for (int j = 0; j < TILE; j += LANES) {
            int r = threadIdx.y + i, c = threadIdx.x + j;
            if (row0 + r < rows && col0 + c < cols) tile[r][c] = x[(row0 + r) * cols + col0 + c];
        }
    }
    __syncthreads();  // the tile is complete before anyone reads it
    for (int i = 0; i < TILE; i += STEP) {
        for (int j = 0; j < TILE; j += LANES) {
            int c = threadIdx.y + i, r = threadIdx.x + j;  // along rows of out now
            if (row0 + r < rows && col0 + c < cols) out[(col0 + c) * rows + row0 + r] = tile[r][c];
        }
    }
}

void transpose_wide(const float* x, float* out, int rows, int cols) {
    dim3 block(LANES, STEP);
    dim3 grid((rows + TILE - 1) / TILE, (cols + TILE - 1) / TILE);
    transpose_wide_kernel<<<grid, block>>>(x, out, rows, cols);
}
