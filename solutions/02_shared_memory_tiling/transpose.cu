constexpr int TILE = 32, STEP = 8;  // a block has 32 x 8 threads, and brings its tile in 4 steps

// x: (rows, cols), out: (cols, rows), both row-major. out[c, r] = x[r, c]
// One thread owns 4 elements of out. One block owns a TILE x TILE tile of x, and so of out.
__global__ void transpose_kernel(const float* x, float* out, int rows, int cols) {
    // BEGIN SOLUTION
    __shared__ float tile[TILE][TILE + 1];  // + 1: the elements of a column lie in 32 banks
    // STARTER: __shared__ float tile[TILE][TILE];
    // END SOLUTION
    int tx = threadIdx.x, ty = threadIdx.y;
    int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;  // where the tile begins in x
    for (int i = 0; i < TILE; i += STEP) {
        int r = ty + i;  // a row of the tile
        // BEGIN SOLUTION
        if (row0 + r < rows && col0 + tx < cols) {
            tile[r][tx] = x[(row0 + r) * cols + col0 + tx];
        }
        // STARTER: // your code here: bring
        // END SOLUTION
    }
    // BEGIN SOLUTION
    __syncthreads();  // the tile is complete before anyone reads it
    for (int i = 0; i < TILE; i += STEP) {
        int c = ty + i;  // a column of the tile: a row of out
        if (col0 + c < cols && row0 + tx < rows) {
            out[(col0 + c) * rows + row0 + tx] = tile[tx][c];
        }
    }
    // STARTER: // your code here: write
    // END SOLUTION
}

void transpose(const float* x, float* out, int rows, int cols) {
    dim3 block(TILE, STEP);
    dim3 grid((cols + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
    transpose_kernel<<<grid, block>>>(x, out, rows, cols);
}
