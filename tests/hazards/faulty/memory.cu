// Use after free, misaligned accesses, reads of what nobody wrote.
#include "../case.cuh"

__global__ void touch(float* data) {
    data[threadIdx.x] += 1;  // HAZARD use-after-free
}
CASE_OF(freed_before_launch) {
    float* data = zeros<float>(32);
    cudaFree(data);
    touch<<<1, 32>>>(data);
}

__global__ void read_only(const float* in, float* out) {
    out[threadIdx.x] = in[threadIdx.x];  // HAZARD use-after-free
}
CASE_OF(freed_after_first_use) {
    float *in = zeros<float>(32), *out = zeros<float>(32);
    read_only<<<1, 32>>>(in, out);
    cudaFree(in);
    read_only<<<1, 32>>>(in, out);
}

__global__ void pointer_in_memory(float** rows, float* out) {
    out[threadIdx.x] = rows[1][threadIdx.x];  // HAZARD use-after-free
}
CASE_OF(freed_row_of_rows) {
    float* host[2] = {zeros<float>(32), zeros<float>(32)};
    float** rows = fresh<float*>(2);
    cudaMemcpy(rows, host, sizeof host, cudaMemcpyHostToDevice);
    cudaFree(host[1]);
    pointer_in_memory<<<1, 32>>>(rows, zeros<float>(32));
}

__global__ void float4_off_by_one(const float* in, float4* out) {
    const float4* from = reinterpret_cast<const float4*>(in + 4 * threadIdx.x + 1);
    out[threadIdx.x] = *from;  // HAZARD misaligned
}
CASE(float4_off_by_one, 1, 4, zeros<float>(64), zeros<float4>(4))

__global__ void float4_rows_of_odd_length(float* m) {
    reinterpret_cast<float4*>(m + threadIdx.x * 33)[0] =
        make_float4(0, 0, 0, 0);  // HAZARD misaligned
}
CASE(float4_rows_of_odd_length, 1, 2, zeros<float>(128))

__global__ void float2_misaligned(float* m) {
    *reinterpret_cast<float2*>(m + 1) = make_float2(1, 2);  // HAZARD misaligned
}
CASE(float2_misaligned, 1, 1, zeros<float>(8))

__global__ void long_misaligned(char* bytes, long long* out) {
    *out = *reinterpret_cast<long long*>(bytes + 4);  // HAZARD misaligned
}
CASE(long_misaligned, 1, 1, zeros<char>(64), zeros<long long>(1))

__global__ void int_misaligned(char* bytes, int* out) {
    *out = *reinterpret_cast<int*>(bytes + 2);  // HAZARD misaligned
}
CASE(int_misaligned, 1, 1, zeros<char>(64), zeros<int>(1))

__global__ void shared_misaligned(float4* out) {
    __shared__ float s[64];
    s[threadIdx.x] = threadIdx.x;
    s[threadIdx.x + 32] = threadIdx.x;
    __syncthreads();
    const float4* from = reinterpret_cast<float4*>(&s[4 * threadIdx.x % 32 + 2]);
    if (threadIdx.x < 8) out[threadIdx.x] = *from;  // HAZARD misaligned
}
CASE(shared_misaligned, 1, 32, zeros<float4>(8))

__global__ void shared_never_written(float* out) {
    __shared__ float s[32];
    if (threadIdx.x < 16) s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];  // HAZARD uninitialized
}
CASE(shared_never_written, 1, 32, zeros<float>(32))

__global__ void edge_of_tile(const float* in, float* out, int n) {
    __shared__ float tile[32];
    if (threadIdx.x < n) tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 32; ++k) sum += tile[k];  // HAZARD uninitialized
    out[threadIdx.x] = sum;
}
CASE(edge_of_tile, 1, 32, zeros<float>(30), zeros<float>(32), 30)

__global__ void halo_forgotten(const float* in, float* out) {
    __shared__ float s[34];
    s[threadIdx.x + 1] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 2];  // HAZARD uninitialized
}
CASE(halo_forgotten, 1, 32, zeros<float>(32), zeros<float>(32))

__global__ void shared_of_the_last_block(int* out) {
    __shared__ int s[32];
    if (blockIdx.x == 0) s[threadIdx.x] = 1;
    __syncthreads();
    out[blockIdx.x * 32 + threadIdx.x] = s[threadIdx.x];  // HAZARD uninitialized
}
CASE(shared_of_the_last_block, 2, 32, zeros<int>(64))

__global__ void counter_not_zeroed(int* out) {
    __shared__ int count;
    atomicAdd(&count, 1);  // HAZARD uninitialized
    __syncthreads();
    if (threadIdx.x == 0) *out = count;
}
CASE(counter_not_zeroed, 1, 32, zeros<int>(1))

__global__ void dynamic_unwritten(int* out) {
    extern __shared__ int d[];
    if (threadIdx.x) d[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = d[31 - threadIdx.x];  // HAZARD uninitialized
}
CASE_DYNAMIC(dynamic_unwritten, 1, 32, 128, zeros<int>(32))

__global__ void adds_to_fresh(float* out) {
    out[threadIdx.x] += 1;  // HAZARD uninitialized/global
}
CASE(adds_to_fresh, 1, 32, fresh<float>(32))

__global__ void copy(const float* in, float* out) {
    out[threadIdx.x] = in[threadIdx.x];  // HAZARD uninitialized/global
}
CASE_OF(half_by_memset) {
    float* in = fresh<float>(32);
    cudaMemset(in, 0, 16 * sizeof(float));
    copy<<<1, 32>>>(in, zeros<float>(32));
}

__global__ void copy_bytes(const char* in, char* out) {
    out[threadIdx.x] = in[threadIdx.x];  // HAZARD uninitialized/global
}
CASE_OF(elements_taken_for_bytes) {
    float host[8] = {}, *in = fresh<float>(8);
    cudaMemcpy(in, host, 8, cudaMemcpyHostToDevice);  // 8 bytes, meant were 8 floats
    copy_bytes<<<1, 32>>>(reinterpret_cast<char*>(in), zeros<char>(32));
}

__global__ void fill_part(float* data, int n) {
    if (threadIdx.x < n) data[threadIdx.x] = 1;
}
__global__ void read_all(const float* data, float* out) {
    out[threadIdx.x] = data[threadIdx.x];  // HAZARD uninitialized/global
}
CASE_OF(part_by_an_earlier_kernel) {
    float* data = fresh<float>(32);
    fill_part<<<1, 32>>>(data, 31);
    read_all<<<1, 32>>>(data, zeros<float>(32));
}

__global__ void atomic_on_fresh(int* count) {
    atomicAdd(count, 1);  // HAZARD uninitialized/global
}
CASE(atomic_on_fresh, 1, 32, fresh<int>(1))

struct Item {
    int key, value;
};
__global__ void half_a_struct(int* out) {
    __shared__ Item items[32];
    items[threadIdx.x].key = 1;
    __syncthreads();
    out[threadIdx.x] =
        items[threadIdx.x].key + items[31 - threadIdx.x].value;  // HAZARD uninitialized
}
CASE(half_a_struct, 1, 32, zeros<int>(32))
