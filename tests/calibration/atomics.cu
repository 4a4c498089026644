// Atomic operations on global and shared memory, from all lanes on one word to each on its own.
#include "buffers.cuh"

constexpr int THREADS = 256;  // in 2 blocks
__device__ int index() { return blockIdx.x * blockDim.x + threadIdx.x; }

// --- global
// ---------------------------------------------------------------------------------------
__global__ void count_all(int* out) { atomicAdd(out, 1); }
__global__ void ticket(int* out, int* tickets) { tickets[index()] = atomicAdd(out, 1); }
__global__ void add_to_one(const int* in, int* out) { atomicAdd(out, in[index()]); }
__global__ void add_float_to_one(const float* in, float* out) { atomicAdd(out, in[index()]); }
__global__ void add_to_32(const int* in, int* out) { atomicAdd(out + index() % 32, in[index()]); }
__global__ void add_float_to_32(const float* in, float* out) {
    atomicAdd(out + index() % 32, in[index()]);
}
__global__ void add_to_own(const float* in, float* out) { atomicAdd(out + index(), in[index()]); }
__global__ void add_stride_8(const float* in, float* out) {
    atomicAdd(out + 8 * index(), in[index()]);
}
__global__ void exchange_own(int* data, int* old) { old[index()] = atomicExch(data + index(), 3); }
__global__ void compare_own(int* data, int* old) { old[index()] = atomicCAS(data + index(), 3, 4); }
__global__ void max_of_all(const int* in, int* out) { atomicMax(out, in[index()]); }
__global__ void histogram_global(const int* in, int* bins) {
    atomicAdd(bins + in[index()] % 16, 1);
}

// --- shared
// ---------------------------------------------------------------------------------------
__global__ void shared_add_to_one(const int* in, int* out) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, in[index()]);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
__global__ void shared_add_to_own(const int* in, int* out) {
    __shared__ int sums[THREADS];
    sums[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(sums + threadIdx.x, in[index()]);
    __syncthreads();
    out[index()] = sums[threadIdx.x];
}
__global__ void shared_add_one_bank(const int* in, int* out) {
    __shared__ int sums[32 * 32];
    for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x) sums[i] = 0;
    __syncthreads();
    atomicAdd(sums + threadIdx.x % 32 * 32, in[index()]);
    __syncthreads();
    if (threadIdx.x < 32) out[threadIdx.x] = sums[threadIdx.x * 32];
}
__global__ void histogram_shared(const int* in, int* bins) {
    __shared__ int mine[16];
    if (threadIdx.x < 16) mine[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(mine + in[index()] % 16, 1);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(bins + threadIdx.x, mine[threadIdx.x]);
}

int main() {
    const int* in = filled<int>(THREADS, [](int i) { return i * 7 % 61; });
    const float* floats = filled(THREADS);
    int* out = filled<int>(8 * THREADS);
    count_all<<<2, 128>>>(out);
    ticket<<<2, 128>>>(out, filled<int>(THREADS));
    add_to_one<<<2, 128>>>(in, out);
    add_float_to_one<<<2, 128>>>(floats, (float*)out);
    add_to_32<<<2, 128>>>(in, out);
    add_float_to_32<<<2, 128>>>(floats, (float*)out);
    add_to_own<<<2, 128>>>(floats, (float*)out);
    add_stride_8<<<2, 128>>>(floats, (float*)out);
    exchange_own<<<2, 128>>>(out, filled<int>(THREADS));
    compare_own<<<2, 128>>>(out, filled<int>(THREADS));
    max_of_all<<<2, 128>>>(in, out);
    histogram_global<<<2, 128>>>(in, out);
    shared_add_to_one<<<2, 128>>>(in, out);
    shared_add_to_own<<<2, 128>>>(in, out);
    shared_add_one_bank<<<1, 128>>>(in, out);
    histogram_shared<<<2, 128>>>(in, out);
    check(cudaDeviceSynchronize());
}
