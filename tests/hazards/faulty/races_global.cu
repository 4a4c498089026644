// Races on global memory, which compute-sanitizer does not look for.
#include "../case.cuh"

__global__ void sum_without_atomic(const float* in, float* sum) {
    *sum += in[blockIdx.x * blockDim.x + threadIdx.x];  // HAZARD race
}
CASE(sum_without_atomic, 2, 32, zeros<float>(64), zeros<float>(1))

__global__ void block_counter(int* count) {
    if (threadIdx.x == 0) ++*count;  // HAZARD race/blocks
}
CASE(block_counter, 3, 32, zeros<int>(1))

__global__ void histogram_of_blocks(const int* in, int* bins) {
    __shared__ int own[4];
    if (threadIdx.x < 4) own[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&own[in[blockIdx.x * 64 + threadIdx.x] % 4], 1);
    __syncthreads();
    if (threadIdx.x < 4) bins[threadIdx.x] += own[threadIdx.x];  // HAZARD race/blocks
}
CASE(histogram_of_blocks, 3, 64, zeros<int>(192), zeros<int>(4))

__global__ void reads_next_block(float* data) {
    int i = blockIdx.x * 32 + threadIdx.x;
    float next = data[i + 1];  // HAZARD race/blocks
    __syncthreads();
    data[i] = next;  // WITH
}
CASE(reads_next_block, 2, 32, zeros<float>(65))

__global__ void reads_previous_block(float* data) {
    int i = blockIdx.x * 32 + threadIdx.x;
    data[i + 32] = i;  // HAZARD race/blocks
    __syncthreads();
    data[i] += 1;  // WITH
}
CASE(reads_previous_block, 3, 32, zeros<float>(128))

__global__ void overlapping_blocks(int* out) {
    out[blockIdx.x * 31 + threadIdx.x] = 1;  // HAZARD race/same-value
}
CASE(overlapping_blocks, 4, 32, zeros<int>(128))

__global__ void atomic_and_plain_read(int* count, int* out) {
    atomicAdd(count, 1);        // HAZARD race/atomic
    out[threadIdx.x] = *count;  // WITH
}
CASE(atomic_and_plain_read, 1, 32, zeros<int>(1), zeros<int>(32))

__global__ void atomic_and_plain_of_blocks(int* count) {
    if (blockIdx.x == 0) atomicAdd(count, 1);  // HAZARD race/atomic
    else *count = 7;                           // WITH
}
CASE(atomic_and_plain_of_blocks, 2, 1, zeros<int>(1))

__global__ void last_block_by_flag(float* partial, int* flag, float* out) {
    if (blockIdx.x == 0) {
        *partial = 3;     // HAZARD race/blocks
        *flag = 1;        // HAZARD race/blocks
    } else if (*flag) {   // WITH
        *out = *partial;  // WITH
    }
}
CASE(last_block_by_flag, 2, 1, zeros<float>(1), zeros<int>(1), zeros<float>(1))

__global__ void bytes_of_two_blocks(char* out) {
    out[blockIdx.x * 3 + threadIdx.x] = 1;  // HAZARD race/same-value
}
CASE(bytes_of_two_blocks, 2, 4, zeros<char>(16))

__global__ void transpose_in_place(float* m) {
    int x = threadIdx.x, y = threadIdx.y;
    float value = m[y * 8 + x];  // HAZARD race
    m[x * 8 + y] = value;        // WITH
}
CASE(transpose_in_place, 1, dim3(8, 8), zeros<float>(64))

__global__ void same_thread_index(float* c) {
    c[threadIdx.x] = blockIdx.x;  // HAZARD race/stores-of-blocks
}
CASE(same_thread_index, 2, 32, zeros<float>(32))

__device__ int device_counter;
__global__ void counts_in_a_device_variable() {
    ++device_counter;  // HAZARD race
}
CASE(counts_in_a_device_variable, 1, 64)

__global__ void vector_over_scalar(float* data) {
    float4* wide = reinterpret_cast<float4*>(data);
    if (threadIdx.x < 8) wide[threadIdx.x] = make_float4(1, 1, 1, 1);  // HAZARD race/stores
    else if (threadIdx.x < 16) data[threadIdx.x + 1] = 2;              // WITH
}
CASE(vector_over_scalar, 1, 32, zeros<float>(64))

__global__ void long_and_half(unsigned long long* data) {
    if (threadIdx.x == 0) *data = 1;                                  // HAZARD race/stores
    if (threadIdx.x == 40) reinterpret_cast<unsigned*>(data)[1] = 2;  // WITH
}
CASE(long_and_half, 1, 64, zeros<unsigned long long>(1))

__global__ void far_apart_blocks(int* data) {
    if (blockIdx.x == 0) data[5] = 1;    // HAZARD race/stores-of-blocks
    if (blockIdx.x == 199) data[5] = 2;  // WITH
}
CASE(far_apart_blocks, 200, 1, zeros<int>(8))

__global__ void atomic_of_block_scope(int* count) {
    atomicAdd_block(count, 1);  // HAZARD race/scope
}
CASE(atomic_of_block_scope, 2, 32, zeros<int>(1))

__global__ void atomics_of_two_scopes(int* count) {
    if (blockIdx.x) atomicAdd(count, 1);  // HAZARD race/atomic
    else atomicMax_block(count, 1);       // WITH
}
CASE(atomics_of_two_scopes, 2, 32, zeros<int>(1))

__global__ void compare_of_block_scope(int* lock) {
    if (threadIdx.x == 0) atomicCAS_block(lock, 0, int(blockIdx.x));  // HAZARD race/scope
}
CASE(compare_of_block_scope, 2, 32, zeros<int>(1))

__global__ void read_only_load_of_its_own(float* out, float* twice) {
    out[threadIdx.x] = 1;
    twice[threadIdx.x] = 2 * __ldg(&out[threadIdx.x]);  // HAZARD race/read-only
}
CASE(read_only_load_of_its_own, 1, 32, zeros<float>(32), zeros<float>(32))

__global__ void read_only_load_of_a_neighbours(float4* out, float4* next) {
    if (blockIdx.x) return;
    out[threadIdx.x] = float4{1, 2, 3, 4};
    __syncthreads();
    next[threadIdx.x] = __ldg(&out[threadIdx.x ^ 1]);  // HAZARD race/read-only
}
CASE(read_only_load_of_a_neighbours, 2, 64, zeros<float4>(64), zeros<float4>(128))
