// Faults that were not seen once.
#include "../case.cuh"

// --- copies that the compiler makes without telling

__global__ void copied_by_a_builtin(char* out) {
    __shared__ char s[64 * 12];
    s[12 * threadIdx.x + 11] = 1;                                               // HAZARD race
    __builtin_memcpy(out + 12 * threadIdx.x, s + 12 * (63 - threadIdx.x), 12);  // WITH
}
CASE(copied_by_a_builtin, 1, 64, zeros<char>(64 * 12))

__global__ void six_bytes_too_far(char* out) {
    __builtin_memset(out + 6 * threadIdx.x, 0, 6);  // HAZARD out-of-bounds
}
CASE(six_bytes_too_far, 1, 32, zeros<char>(32 * 6 - 1))

__global__ void five_bytes_overlap(char* out, const char* in, int n) {
    memcpy(out + 4 * threadIdx.x, in + 5 * threadIdx.x, n);  // HAZARD race/stores
}
CASE_OF(five_bytes_overlap) {
    char host[256], *in = fresh<char>(256);
    for (int i = 0; i < 256; ++i) host[i] = i;
    cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
    five_bytes_overlap<<<1, 32>>>(zeros<char>(256), in, 5);
}

// --- constant memory

__constant__ float factors[4];
__device__ void put(float* to, float value) {
    *to = value;  // HAZARD constant-write
}
__global__ void writes_a_constant(float* out) {
    put(&factors[threadIdx.x], 2);
    out[threadIdx.x] = factors[threadIdx.x];
}
CASE(writes_a_constant, 1, 4, zeros<float>(4))

__constant__ int table[8] = {1, 2, 3};
__global__ void clears_a_table() {
    memset(const_cast<int*>(table), 0, sizeof table);  // HAZARD constant-write
}
CASE(clears_a_table, 1, 1)

// --- shuffles

__global__ void sum_of_a_broken_warp(const float* in, float* out) {
    float v = in[threadIdx.x];
    for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d);  // HAZARD absent-lane
    if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = v;
}
CASE(sum_of_a_broken_warp, 1, 40, zeros<float>(40), zeros<float>(2))

__global__ void half_reads_the_other(float* out) {
    float v = threadIdx.x;
    if (threadIdx.x < 16) v += __shfl_xor_sync(0xffff, v, 16);  // HAZARD absent-lane
    out[threadIdx.x] = v;
}
CASE(half_reads_the_other, 1, 32, zeros<float>(32))

__global__ void reads_who_has_left(double* out, int n) {
    const unsigned mask = __ballot_sync(~0u, threadIdx.x < n);
    if (threadIdx.x >= n) return;
    out[threadIdx.x] = 1 - __shfl_sync(mask, double(threadIdx.x), 31);  // HAZARD absent-lane
}
CASE(reads_who_has_left, 1, 32, zeros<double>(32), 30)

// --- fences that are not enough

__global__ void flag_without_a_fence(int* out) {
    __shared__ int data, ready;
    if (threadIdx.x == 0) ready = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        data = 42;  // HAZARD race
        atomicExch(&ready, 1);
    } else if (threadIdx.x == 40) {
        while (!atomicAdd(&ready, 0)) {
        }
        *out = data;  // WITH
    }
}
CASE(flag_without_a_fence, 1, 64, zeros<int>(1))

__global__ void written_behind_the_fence(int* out) {
    __shared__ int data, ready;
    if (threadIdx.x == 0) ready = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence_block();
        data = 42;  // HAZARD race
        atomicExch(&ready, 1);
    } else if (threadIdx.x == 40) {
        while (!atomicAdd(&ready, 0)) {
        }
        *out = data;  // WITH
    }
}
CASE(written_behind_the_fence, 1, 64, zeros<int>(1))

// --- stores of one value are harmless only where it is one

__global__ void values_of_two_lanes(const float* in, float* out) {
    __shared__ float s[2];
    const float v = in[threadIdx.x];
    s[threadIdx.x / 32] = v;  // HAZARD race/stores
    __syncthreads();
    out[threadIdx.x] = s[0] + s[1];
}
CASE_OF(values_of_two_lanes) {
    float host[64] = {}, *in = fresh<float>(64);
    host[17] = 1;
    cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
    values_of_two_lanes<<<1, 64>>>(in, zeros<float>(64));
}

__global__ void counter_set_back_too_soon(unsigned* count) {
    if (threadIdx.x) return;
    *count = 0;                   // HAZARD race/atomic
    atomicInc(count, gridDim.x);  // WITH
}
CASE(counter_set_back_too_soon, 3, 32, zeros<unsigned>(1))

__global__ void guess_that_is_kept(int* count, int* out) {
    const int seen = *count;  // HAZARD race/atomic
    atomicAdd(count, 1);      // WITH
    out[threadIdx.x] = seen;
}
CASE(guess_that_is_kept, 1, 32, zeros<int>(1), zeros<int>(32))

// --- memory that kernels allocate

__global__ void heap_overrun(int* out, int n) {
    int* own = static_cast<int*>(malloc(n * sizeof(int)));
    for (int i = 0; i <= n; ++i) own[i] = i;  // HAZARD out-of-bounds
    out[threadIdx.x] = own[threadIdx.x % n];
    free(own);
}
CASE(heap_overrun, 1, 32, zeros<int>(32), 7)

__global__ void heap_race(int* out) {
    __shared__ int* all;
    if (threadIdx.x == 0) all = new int[64];
    __syncthreads();
    all[threadIdx.x] = threadIdx.x;            // HAZARD race
    out[threadIdx.x] = all[63 - threadIdx.x];  // WITH
}
CASE(heap_race, 1, 64, zeros<int>(64))

__global__ void heap_after_free(int* out) {
    __shared__ int* all;
    if (threadIdx.x == 0) all = static_cast<int*>(malloc(64 * sizeof(int)));
    __syncthreads();
    all[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) free(all);
    __syncthreads();
    out[threadIdx.x] = all[63 - threadIdx.x];  // HAZARD use-after-free
}
CASE(heap_after_free, 1, 64, zeros<int>(64))

__global__ void heap_unwritten(float* out) {
    float* own = new float[4];
    own[threadIdx.x % 4] = 1;
    out[threadIdx.x] = own[0] + own[1];  // HAZARD uninitialized/global
}
CASE(heap_unwritten, 1, 32, zeros<float>(32))

__device__ int* kept;
__global__ void freed_by_all() {
    if (threadIdx.x == 0) kept = static_cast<int*>(malloc(4));
    __syncthreads();
    free(kept);  // HAZARD bad-free
}
CASE(freed_by_all, 1, 32)
