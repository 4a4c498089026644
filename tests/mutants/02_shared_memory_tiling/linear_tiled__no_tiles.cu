// reject: gate
// Fault: right values, but nothing is shared
// x: (M, K), W: (N, K), b: (N), out: (M, N), all row-major. out = x * W^T + b
// One thread owns one element of out. One block owns a patch of 32 x 32 elements of out.
// The 32 threads of a warp own 32 neighbours in one row of out.
__global__ void linear_tiled_kernel(const float* x, const float* W, const float* b, float* out,
                                    int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; k++) {
            sum += x[row * K + k] * W[col * K + k];
        }
        out[row * N + col] = sum + b[col];
    }
}

void linear_tiled(const float* x, const float* W, const float* b, float* out, int M, int N, int K) {
    dim3 block(32, 32);
    dim3 grid((N + 31) / 32, (M + 31) / 32);
    linear_tiled_kernel<<<grid, block>>>(x, W, b, out, M, N, K);
}
