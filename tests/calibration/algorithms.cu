// Reductions, scans, sums over rows: whole algorithms, small.
#include "buffers.cuh"

constexpr int THREADS = 256;

// --- tree reductions in shared memory
// -------------------------------------------------------------
__global__ void tree_interleaved(const float* in, float* out) {
    __shared__ float s[THREADS];
    const int t = threadIdx.x;
    s[t] = in[blockIdx.x * THREADS + t];
    __syncthreads();
    for (int step = 1; step < THREADS; step *= 2) {
        if (t % (2 * step) == 0) s[t] += s[t + step];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
__global__ void tree_interleaved_dense(const float* in, float* out) {  // full warps, bank conflicts
    __shared__ float s[THREADS];
    const int t = threadIdx.x;
    s[t] = in[blockIdx.x * THREADS + t];
    __syncthreads();
    for (int step = 1; step < THREADS; step *= 2) {
        const int i = 2 * step * t;
        if (i < THREADS) s[i] += s[i + step];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
__global__ void tree_sequential(const float* in, float* out) {
    __shared__ float s[THREADS];
    const int t = threadIdx.x;
    s[t] = in[blockIdx.x * THREADS + t];
    __syncthreads();
    for (int step = THREADS / 2; step > 0; step /= 2) {
        if (t < step) s[t] += s[t + step];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
__global__ void tree_shuffled(const float* in, float* out) {
    __shared__ float of_warps[THREADS / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum = in[blockIdx.x * THREADS + threadIdx.x];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (lane == 0) of_warps[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = lane < THREADS / 32 ? of_warps[lane] : 0.0f;
        for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
        if (lane == 0) atomicAdd(out, sum);
    }
}

// --- prefix sums
// ----------------------------------------------------------------------------------
__global__ void scan_hillis_steele(const float* in, float* out) {
    __shared__ float s[2][THREADS];
    int now = 0;
    const int t = threadIdx.x;
    s[0][t] = in[t];
    __syncthreads();
    for (int step = 1; step < THREADS; step *= 2) {
        s[1 - now][t] = t >= step ? s[now][t] + s[now][t - step] : s[now][t];
        now = 1 - now;
        __syncthreads();
    }
    out[t] = s[now][t];
}

// --- rows of a matrix of 8 rows and 96 columns
// ----------------------------------------------------
constexpr int COLS = 96;
__global__ void softmax_by_warp(const float* in, float* out) {
    const int row = threadIdx.x / 32, lane = threadIdx.x % 32;
    float most = -INFINITY, sum = 0;
    for (int col = lane; col < COLS; col += 32) most = fmaxf(most, in[row * COLS + col]);
    for (int step = 16; step > 0; step /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, step));
    for (int col = lane; col < COLS; col += 32) sum += expf(in[row * COLS + col] - most);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
    for (int col = lane; col < COLS; col += 32)
        out[row * COLS + col] = expf(in[row * COLS + col] - most) / sum;
}
__global__ void vector_times_matrix(const float* v, const float* A, float* out) {
    __shared__ float vs[8];
    if (threadIdx.x < 8) vs[threadIdx.x] = v[threadIdx.x];
    __syncthreads();
    float sum = 0;
    for (int row = 0; row < 8; row++) sum += vs[row] * A[row * COLS + threadIdx.x];
    out[threadIdx.x] = sum;
}
__global__ void heat_step(const float* in, float* out, int width, int height) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x == 0 || y == 0 || x >= width - 1 || y >= height - 1) return;
    const float* p = in + y * width + x;
    out[y * width + x] = 0.25f * (p[-1] + p[1] + p[-width] + p[width]);
}

int main() {
    const float* in = filled(4 * THREADS);
    float* out = filled(4 * THREADS);
    tree_interleaved<<<2, THREADS>>>(in, out);
    tree_interleaved_dense<<<2, THREADS>>>(in, out);
    tree_sequential<<<2, THREADS>>>(in, out);
    tree_shuffled<<<2, THREADS>>>(in, out);
    scan_hillis_steele<<<1, THREADS>>>(in, out);
    softmax_by_warp<<<1, THREADS>>>(in, out);
    vector_times_matrix<<<1, COLS>>>(in, in, out);
    heat_step<<<dim3(2, 4), dim3(16, 8)>>>(in, out, 32, 32);
    check(cudaDeviceSynchronize());
}
