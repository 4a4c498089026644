// Kernels with missing barriers in shared memory, one race each unless its name says otherwise.
// Those named fine_... have none. racecheck sees all of them in one run.
#include "buffers.cuh"

constexpr int THREADS = 64;

__global__ void read_after_write(float* data) {
    __shared__ float s[THREADS];
    s[threadIdx.x] = data[threadIdx.x];
    data[threadIdx.x] = s[THREADS - 1 - threadIdx.x];
}
__global__ void read_after_write_one_warp(float* data) {
    __shared__ float s[32];
    s[threadIdx.x] = data[threadIdx.x];
    data[threadIdx.x] = s[31 - threadIdx.x];
}
__global__ void write_after_read(float* data) {
    __shared__ float s[THREADS];
    s[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    const float other = s[(threadIdx.x + 33) % THREADS];
    s[threadIdx.x] = 2 * other;
    __syncthreads();
    data[threadIdx.x] = s[threadIdx.x];
}
__global__ void write_after_write(float* data) {
    __shared__ float s[THREADS];
    s[threadIdx.x] = data[threadIdx.x];
    s[THREADS - 1 - threadIdx.x] = 3;
    __syncthreads();
    data[threadIdx.x] = s[threadIdx.x];
}
__global__ void all_write_one(float* data) {
    __shared__ float last;
    last = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = last;
}
__global__ void neighbour(float* data) {
    __shared__ float s[THREADS + 1];
    s[threadIdx.x] = data[threadIdx.x];
    if (threadIdx.x == 0) s[THREADS] = 0;
    data[threadIdx.x] = s[threadIdx.x + 1];
}
__global__ void between_two_warps(float* data) {
    __shared__ float s[THREADS];
    if (threadIdx.x >= 32) s[threadIdx.x] = data[threadIdx.x];
    if (threadIdx.x < 32) data[threadIdx.x] = s[threadIdx.x + 32];
}
__global__ void syncwarp_is_not_enough(float* data) {
    __shared__ float s[THREADS];
    s[threadIdx.x] = data[threadIdx.x];
    __syncwarp();
    data[threadIdx.x] = s[(threadIdx.x + 32) % THREADS];
}
__global__ void tree_without_barrier(float* data) {
    __shared__ float s[THREADS];
    s[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    for (int step = THREADS / 2; step > 0; step /= 2)
        if (threadIdx.x < step) s[threadIdx.x] += s[threadIdx.x + step];
    __syncthreads();
    if (threadIdx.x == 0) data[0] = s[0];
}
__global__ void scan_in_place(float* data) {
    __shared__ float s[THREADS];
    s[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    for (int step = 1; step < THREADS; step *= 2) {
        if (threadIdx.x >= step) s[threadIdx.x] += s[threadIdx.x - step];
        __syncthreads();
    }
    data[threadIdx.x] = s[threadIdx.x];
}
__global__ void loop_without_second_barrier(float* data) {
    __shared__ float s[THREADS];
    float sum = 0;
    for (int round = 0; round < 4; round++) {
        s[threadIdx.x] = data[round * THREADS + threadIdx.x];
        __syncthreads();
        sum += s[THREADS - 1 - threadIdx.x];
    }
    data[threadIdx.x] = sum;
}
__global__ void tile_without_first_barrier(float* data) {
    __shared__ float tile[8][9];
    const int x = threadIdx.x % 8, y = threadIdx.x / 8;
    float sum = 0;
    for (int round = 0; round < 4; round++) {
        tile[y][x] = data[round * THREADS + threadIdx.x];
        for (int k = 0; k < 8; k++) sum += tile[k][x];
        __syncthreads();
    }
    data[threadIdx.x] = sum;
}
__global__ void counter_without_atomic(int* data) {
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    if (data[threadIdx.x] % 2) count++;
    __syncthreads();
    if (threadIdx.x == 0) data[0] = count;
}
__global__ void histogram_without_atomic(int* data) {
    __shared__ int bins[8];
    if (threadIdx.x < 8) bins[threadIdx.x] = 0;
    __syncthreads();
    bins[threadIdx.x % 8] += 1;
    __syncthreads();
    if (threadIdx.x < 8) data[threadIdx.x] = bins[threadIdx.x];
}
__global__ void zero_beside_atomic(int* data) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;  // the barrier behind it is missing
    atomicAdd(&sum, data[threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) data[0] = sum;
}
__global__ void read_beside_atomic(int* data) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, data[threadIdx.x]);
    data[threadIdx.x] = sum;
}
__global__ void double_buffer_one_barrier_short(float* data) {
    __shared__ float s[2][THREADS];
    s[0][threadIdx.x] = data[threadIdx.x];
    int now = 0;
    for (int round = 0; round < 3; round++) {
        s[1 - now][threadIdx.x] = s[now][(threadIdx.x + 1) % THREADS] + 1;
        now = 1 - now;
    }
    data[threadIdx.x] = s[now][threadIdx.x];
}
__global__ void bytes_of_one_word(char* data) {
    __shared__ char s[THREADS];
    s[threadIdx.x] = data[threadIdx.x];
    data[threadIdx.x] = s[threadIdx.x ^ 1];
}
__global__ void halo_without_barrier(float* data) {
    __shared__ float s[THREADS + 2];
    s[threadIdx.x + 1] = data[threadIdx.x + 1];
    if (threadIdx.x < 2) s[threadIdx.x * (THREADS + 1)] = data[threadIdx.x * (THREADS + 1)];
    data[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 1] + s[threadIdx.x + 2];
}
__global__ void dynamic_without_barrier(float* data) {
    extern __shared__ float d[];
    d[threadIdx.x] = data[threadIdx.x];
    data[threadIdx.x] = d[THREADS - 1 - threadIdx.x];
}
__global__ void same_value_by_all(int* data) {
    __shared__ int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (data[threadIdx.x] % 2 == 0) flag = 1;
    __syncthreads();
    data[threadIdx.x] = flag;
}

// --- no race
// --------------------------------------------------------------------------------------
__global__ void fine_with_barrier(float* data) {
    __shared__ float s[THREADS];
    s[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = s[THREADS - 1 - threadIdx.x];
}
__global__ void fine_with_syncwarp(float* data) {
    __shared__ float s[THREADS];
    s[threadIdx.x] = data[threadIdx.x];
    __syncwarp();
    data[threadIdx.x] = s[threadIdx.x ^ 1];
}
__global__ void fine_own_element(float* data) {
    __shared__ float s[THREADS];
    s[threadIdx.x] = data[threadIdx.x];
    data[threadIdx.x] = 2 * s[threadIdx.x];
}
__global__ void fine_atomics(int* data) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, data[threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) data[0] = sum;
}
__global__ void fine_neighbouring_bytes(char* data) {
    __shared__ char s[THREADS];
    s[threadIdx.x] = data[threadIdx.x];
    data[threadIdx.x] = s[threadIdx.x];
}

int main() {
    float* data = filled(8 * THREADS);
    int* numbers = filled<int>(8 * THREADS);
    char* bytes = filled<char>(THREADS);
    read_after_write<<<1, THREADS>>>(data);
    read_after_write_one_warp<<<1, 32>>>(data);
    write_after_read<<<1, THREADS>>>(data);
    write_after_write<<<1, THREADS>>>(data);
    all_write_one<<<1, THREADS>>>(data);
    neighbour<<<1, THREADS>>>(data);
    between_two_warps<<<1, THREADS>>>(data);
    syncwarp_is_not_enough<<<1, THREADS>>>(data);
    tree_without_barrier<<<1, THREADS>>>(data);
    scan_in_place<<<1, THREADS>>>(data);
    loop_without_second_barrier<<<1, THREADS>>>(data);
    tile_without_first_barrier<<<1, THREADS>>>(data);
    counter_without_atomic<<<1, THREADS>>>(numbers);
    histogram_without_atomic<<<1, THREADS>>>(numbers);
    zero_beside_atomic<<<1, THREADS>>>(numbers);
    read_beside_atomic<<<1, THREADS>>>(numbers);
    double_buffer_one_barrier_short<<<1, THREADS>>>(data);
    bytes_of_one_word<<<1, THREADS>>>(bytes);
    halo_without_barrier<<<1, THREADS>>>(data);
    dynamic_without_barrier<<<1, THREADS, THREADS * sizeof(float)>>>(data);
    same_value_by_all<<<1, THREADS>>>(numbers);
    fine_with_barrier<<<1, THREADS>>>(data);
    fine_with_syncwarp<<<1, THREADS>>>(data);
    fine_own_element<<<1, THREADS>>>(data);
    fine_atomics<<<1, THREADS>>>(numbers);
    fine_neighbouring_bytes<<<1, THREADS>>>(bytes);
    check(cudaDeviceSynchronize());
}
