constexpr int ROWS = 8;          // of x, whose minima a block spreads
constexpr int SPREADERS = 1024;  // its threads

// out: (N, M), of which the first row holds the minima; shift: (N).
// out[n][m] = minimum[m] + shift[n]
// One thread owns every 128th element of a column of out. One block owns ROWS columns of out,
// minima and all: so nobody overwrites a minimum that another block still needs.
__global__ void spread_kernel(const float* shift, float* out, int M, int N) {
    __shared__ float least[ROWS];
    int m = blockIdx.x * ROWS + threadIdx.x % ROWS;
    // BEGIN SOLUTION
    if (threadIdx.x < ROWS && m < M) least[threadIdx.x] = out[m];
    __syncthreads();  // all minima are read before anyone overwrites them
    if (m >= M) return;
    for (int n = threadIdx.x / ROWS; n < N; n += SPREADERS / ROWS) {
        out[n * M + m] = least[threadIdx.x % ROWS] + shift[n];
    }
    // END SOLUTION
}

void spread_minima(float* out, const float* shift, int M, int N) {
    spread_kernel<<<(M + ROWS - 1) / ROWS, SPREADERS>>>(shift, out, M, N);
}
