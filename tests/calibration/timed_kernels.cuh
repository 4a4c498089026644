// Kernels that are neither the workbook's nor fitted to anything: their times on a card tell how
// far an estimate can be trusted. Launchers are written as in the workbook.

// in, out: n floats each, n a multiple of 4. out[i] = 2 * in[i], four at a time
__global__ void scale_by_fours_kernel(const float4* in, float4* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n / 4) return;
    const float4 v = in[i];
    out[i] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
}
void scale_by_fours(const float* in, float* out, int n) {
    scale_by_fours_kernel<<<(n / 4 + 255) / 256, 256>>>((const float4*)in, (float4*)out, n);
}

// in: (n, 8), out: n. out[i] = in[i][0]
__global__ void every_eighth_kernel(const float* in, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[8 * (long long)i];
}
void every_eighth(const float* in, float* out, int n) {
    every_eighth_kernel<<<(n + 255) / 256, 256>>>(in, out, n);
}

// in: (rows, cols), out: (cols, rows)
__global__ void transpose_plain_kernel(const float* in, float* out, int rows, int cols) {
    const int row = blockIdx.y * 32 + threadIdx.y, col = blockIdx.x * 32 + threadIdx.x;
    if (row < rows && col < cols) out[col * rows + row] = in[row * cols + col];
}
void transpose_plain(const float* in, float* out, int rows, int cols) {
    dim3 grid((cols + 31) / 32, (rows + 31) / 32);
    transpose_plain_kernel<<<grid, dim3(32, 32)>>>(in, out, rows, cols);
}
template <int WIDTH>
__global__ void transpose_kernel(const float* in, float* out, int rows, int cols) {
    __shared__ float tile[32][WIDTH];
    const int row = blockIdx.y * 32 + threadIdx.y, col = blockIdx.x * 32 + threadIdx.x;
    if (row < rows && col < cols) tile[threadIdx.y][threadIdx.x] = in[row * cols + col];
    __syncthreads();  // the tile is complete
    const int to = blockIdx.x * 32 + threadIdx.y, from = blockIdx.y * 32 + threadIdx.x;
    if (to < cols && from < rows) out[to * rows + from] = tile[threadIdx.x][threadIdx.y];
}
void transpose_unpadded(const float* in, float* out, int rows, int cols) {
    dim3 grid((cols + 31) / 32, (rows + 31) / 32);
    transpose_kernel<32><<<grid, dim3(32, 32)>>>(in, out, rows, cols);
}
void transpose_padded(const float* in, float* out, int rows, int cols) {
    dim3 grid((cols + 31) / 32, (rows + 31) / 32);
    transpose_kernel<33><<<grid, dim3(32, 32)>>>(in, out, rows, cols);
}

// in: (rows, cols), out: rows. One thread owns a row
__global__ void row_sums_kernel(const float* in, float* out, int rows, int cols) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int col = 0; col < cols; col++) sum += in[row * cols + col];
    out[row] = sum;
}
void row_sums(const float* in, float* out, int rows, int cols) {
    row_sums_kernel<<<(rows + 255) / 256, 256>>>(in, out, rows, cols);
}
// in: (rows, cols), out: cols. One thread owns a column
__global__ void column_sums_kernel(const float* in, float* out, int rows, int cols) {
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= cols) return;
    float sum = 0.0f;
    for (int row = 0; row < rows; row++) sum += in[row * cols + col];
    out[col] = sum;
}
void column_sums(const float* in, float* out, int rows, int cols) {
    column_sums_kernel<<<(cols + 255) / 256, 256>>>(in, out, rows, cols);
}
// in: (rows, cols), out: rows. One warp owns a row
__global__ void row_sums_by_warp_kernel(const float* in, float* out, int rows, int cols) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int col = lane; col < cols; col += 32) sum += in[row * cols + col];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (lane == 0) out[row] = sum;
}
void row_sums_by_warp(const float* in, float* out, int rows, int cols) {
    row_sums_by_warp_kernel<<<(rows + 7) / 8, 256>>>(in, out, rows, cols);
}

// in: n, n a multiple of 256, out: n / 256. One block sums 256 neighbours
__global__ void block_sums_kernel(const float* in, float* out) {
    __shared__ float s[256];
    const int t = threadIdx.x;
    s[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (t < step) s[t] += s[t + step];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
void block_sums(const float* in, float* out, int n) {
    block_sums_kernel<<<n / 256, 256>>>(in, out);
}

// in, out: (rows, cols). Each element becomes the mean of its four neighbours
__global__ void heat_step_kernel(const float* in, float* out, int rows, int cols) {
    const int row = blockIdx.y * 8 + threadIdx.y, col = blockIdx.x * 32 + threadIdx.x;
    if (row == 0 || col == 0 || row >= rows - 1 || col >= cols - 1) return;
    const float* p = in + row * cols + col;
    out[row * cols + col] = 0.25f * (p[-1] + p[1] + p[-cols] + p[cols]);
}
void heat_step(const float* in, float* out, int rows, int cols) {
    dim3 grid((cols + 31) / 32, (rows + 7) / 8);
    heat_step_kernel<<<grid, dim3(32, 8)>>>(in, out, rows, cols);
}

// x: (M, K), W: (N, K), out: (M, N), sizes multiples of 32. Rows of Ws lie in one bank
__global__ void linear_unpadded_kernel(const float* x, const float* W, float* out, int N, int K) {
    __shared__ float xs[32][32], Ws[32][32];
    const int tx = threadIdx.x, ty = threadIdx.y;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += 32) {
        xs[ty][tx] = x[(blockIdx.y * 32 + ty) * K + k0 + tx];
        Ws[ty][tx] = W[(blockIdx.x * 32 + ty) * K + k0 + tx];
        __syncthreads();  // both tiles are complete
        for (int k = 0; k < 32; k++) sum += xs[ty][k] * Ws[tx][k];
        __syncthreads();  // everyone has read both
    }
    out[(blockIdx.y * 32 + ty) * N + blockIdx.x * 32 + tx] = sum;
}
void linear_unpadded(const float* x, const float* W, float* out, int M, int N, int K) {
    linear_unpadded_kernel<<<dim3(N / 32, M / 32), dim3(32, 32)>>>(x, W, out, N, K);
}

// x: (M, K), W: (N, K), out: (M, N), sizes multiples of 64. One thread owns 4 x 4 elements of out
__global__ void linear_by_fours_kernel(const float* x, const float* W, float* out, int N, int K) {
    __shared__ float xs[16][64 + 4], Ws[16][64 + 4];  // transposed: a row has one k
    const int t = threadIdx.x, tx = t % 16, ty = t / 16;
    float sum[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += 16) {
        for (int i = t; i < 64 * 16; i += 256) {
            xs[i % 16][i / 16] = x[(blockIdx.y * 64 + i / 16) * K + k0 + i % 16];
            Ws[i % 16][i / 16] = W[(blockIdx.x * 64 + i / 16) * K + k0 + i % 16];
        }
        __syncthreads();  // both tiles are complete
        for (int k = 0; k < 16; k++) {
            const float4 a = *(const float4*)&xs[k][4 * ty], b = *(const float4*)&Ws[k][4 * tx];
            const float as[4] = {a.x, a.y, a.z, a.w}, bs[4] = {b.x, b.y, b.z, b.w};
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) sum[i][j] += as[i] * bs[j];
        }
        __syncthreads();  // everyone has read both
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            out[(blockIdx.y * 64 + 4 * ty + i) * N + blockIdx.x * 64 + 4 * tx + j] = sum[i][j];
}
void linear_by_fours(const float* x, const float* W, float* out, int M, int N, int K) {
    linear_by_fours_kernel<<<dim3(N / 64, M / 64), 256>>>(x, W, out, N, K);
}
