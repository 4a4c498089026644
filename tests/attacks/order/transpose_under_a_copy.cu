// transpose: race
// rows and cols go to the device through one pinned word each time: the second overwrites the first
// says: race between the host and a copy from its memory
constexpr int TILE = 32, STEP = 8;  // a block has 32 x 8 threads, and brings its tile in 4 steps

// x: (rows, cols), out: (cols, rows), both row-major. out[c, r] = x[r, c]
// One thread owns 4 elements of out. One block owns a TILE x TILE tile of x, and so of out.
__global__ void transpose_kernel(const float* x, float* out, const int* sizes) {
    int rows = sizes[0], cols = sizes[1];
    __shared__ float tile[TILE][TILE + 1];  // + 1: the elements of a column lie in 32 banks
    int tx = threadIdx.x, ty = threadIdx.y;
    int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;  // where the tile begins in x
    for (int i = 0; i < TILE; i += STEP) {
        int r = ty + i;  // a row of the tile
        if (row0 + r < rows && col0 + tx < cols) {
            tile[r][tx] = x[(row0 + r) * cols + col0 + tx];
        }
    }
    __syncthreads();  // the tile is complete before anyone reads it
    for (int i = 0; i < TILE; i += STEP) {
        int c = ty + i;  // a column of the tile: a row of out
        if (col0 + c < cols && row0 + tx < rows) {
            out[(col0 + c) * rows + row0 + tx] = tile[tx][c];
        }
    }
}

void transpose(const float* x, float* out, int rows, int cols) {
    dim3 block(TILE, STEP);
    dim3 grid((cols + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
    static int *host = nullptr, *sizes = nullptr;
    if (!host) {
        cudaHostAlloc(&host, sizeof(int), cudaHostAllocDefault);
        cudaMalloc(&sizes, 2 * sizeof(int));
    }
    *host = rows;
    cudaMemcpyAsync(sizes, host, sizeof(int), cudaMemcpyHostToDevice, 0);
    *host = cols;
    cudaMemcpyAsync(sizes + 1, host, sizeof(int), cudaMemcpyHostToDevice, 0);
    transpose_kernel<<<grid, block>>>(x, out, sizes);
}
