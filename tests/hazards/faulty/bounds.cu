// Accesses outside of arrays.
#include "../case.cuh"

__global__ void without_guard(float* out) {
    out[blockIdx.x * 32 + threadIdx.x] = 1;  // HAZARD out-of-bounds
}
CASE(without_guard, 2, 32, zeros<float>(50))

__global__ void off_by_one(float* out, int n) {
    int i = threadIdx.x;
    if (i <= n) out[i] = 1;  // HAZARD out-of-bounds
}
CASE(off_by_one, 1, 64, zeros<float>(40), 40)

__global__ void before_the_first(const float* in, float* out) {
    out[threadIdx.x] = in[int(threadIdx.x) - 1];  // HAZARD out-of-bounds
}
CASE(before_the_first, 1, 32, zeros<float>(32), zeros<float>(32))

__global__ void far_away(int* out) {
    out[1000000 + threadIdx.x] = 1;  // HAZARD out-of-bounds
}
CASE(far_away, 1, 32, zeros<int>(32))

__global__ void next_allocation(int* first, int* second) {
    if (second > first) first[second - first] = 1;
    first[64 + threadIdx.x] = 1;  // HAZARD out-of-bounds
}
CASE(next_allocation, 1, 32, zeros<int>(64), zeros<int>(64))

__global__ void atomic_outside(int* bins, int n) {
    atomicAdd(&bins[threadIdx.x % n], 1);  // HAZARD out-of-bounds
}
CASE(atomic_outside, 1, 32, zeros<int>(8), 9)

__global__ void wide_over_the_end(const float* in, float4* out) {
    out[0] = reinterpret_cast<const float4*>(in)[1];  // HAZARD out-of-bounds
}
CASE(wide_over_the_end, 1, 1, zeros<float>(6), zeros<float4>(1))

__global__ void wide_before_the_first(const float4* in, float4* out) {
    out[threadIdx.x] = in[(int)threadIdx.x - 1];  // HAZARD out-of-bounds
}
CASE(wide_before_the_first, 1, 4, zeros<float4>(4), zeros<float4>(4))

__global__ void rows_and_columns_swapped(float* m, int rows, int cols) {
    int r = threadIdx.y, c = threadIdx.x;
    if (r < cols && c < rows) m[r * cols + c] = 1;  // HAZARD out-of-bounds
}
CASE(rows_and_columns_swapped, 1, dim3(16, 16), zeros<float>(4 * 12), 4, 12)

__global__ void shared_row_overflow(float* out) {
    __shared__ float tile[8][8];
    tile[7][threadIdx.x] = 1;  // HAZARD out-of-bounds/shared
    __syncthreads();
    out[threadIdx.x] = tile[7][threadIdx.x % 8];
}
CASE(shared_row_overflow, 1, 9, zeros<float>(9))

__global__ void shared_reads_past_the_end(float* out) {
    __shared__ float s[32];
    s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 1];  // HAZARD out-of-bounds/shared
}
CASE(shared_reads_past_the_end, 1, 32, zeros<float>(32))

__global__ void shared_negative(int* out) {
    __shared__ int s[32];
    s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[(int)threadIdx.x - 1];  // HAZARD out-of-bounds/shared
}
CASE(shared_negative, 1, 32, zeros<int>(32))

__global__ void into_the_next_shared_array(int* out) {
    __shared__ int a[16], b[16];
    b[threadIdx.x % 16] = 2;
    a[threadIdx.x + 16 * (threadIdx.x == 3)] = 1;  // HAZARD out-of-bounds/shared
    __syncthreads();
    out[threadIdx.x] = b[threadIdx.x];
}
CASE(into_the_next_shared_array, 1, 16, zeros<int>(32))

__global__ void dynamic_too_small(int* out) {
    extern __shared__ int d[];
    d[threadIdx.x] = threadIdx.x;  // HAZARD out-of-bounds/shared
    __syncthreads();
    out[threadIdx.x] = d[threadIdx.x % 32];
}
CASE_DYNAMIC(dynamic_too_small, 1, 64, 32 * sizeof(int), zeros<int>(64))

__global__ void dynamic_not_given(int* out) {
    extern __shared__ int d[];
    d[threadIdx.x] = threadIdx.x;  // HAZARD out-of-bounds/shared
    out[threadIdx.x] = 1;
}
CASE(dynamic_not_given, 1, 32, zeros<int>(32))

__global__ void grid_stride_too_far(float* out, int n) {
    for (int i = threadIdx.x; i < n + 32; i += 32) out[i] = 1;  // HAZARD out-of-bounds
}
CASE(grid_stride_too_far, 1, 32, zeros<float>(100), 100)

__device__ float read_at(const float* p, int i) {
    return p[i];  // HAZARD out-of-bounds
}
__global__ void in_a_function(const float* in, float* out) {
    out[threadIdx.x] = read_at(in, threadIdx.x * 2);
}
CASE(in_a_function, 1, 32, zeros<float>(40), zeros<float>(32))

__global__ void host_vector(const int* in, int* out) {
    out[threadIdx.x] = in[threadIdx.x];  // HAZARD out-of-bounds/host-memory
}
CASE_OF(host_vector) {
    static int* host = new int[32]();
    host_vector<<<1, 32>>>(host, zeros<int>(32));
}

__global__ void host_stack(int* sum) {
    sum[threadIdx.x] = 1;  // HAZARD out-of-bounds/host-memory
}
CASE_OF(host_stack) {
    int sums[32];
    host_stack<<<1, 32>>>(sums);
    if (sums[3] == 2) printf("never\n");
}

__global__ void bytes_past_the_end(unsigned char* out) {
    out[threadIdx.x] = 1;  // HAZARD out-of-bounds
}
CASE(bytes_past_the_end, 1, 32, zeros<unsigned char>(31))

__global__ void pitch_forgotten(float* m, int width, int height) {
    m[threadIdx.y * width * 2 + threadIdx.x] = 1;  // HAZARD out-of-bounds
}
CASE(pitch_forgotten, 1, dim3(8, 8), zeros<float>(64), 8, 8)

__global__ void copied_too_far(char* to, const char* from, int n) {
    if (threadIdx.x == 0) memcpy(to, from, n);  // HAZARD out-of-bounds
}
CASE(copied_too_far, 1, 32, zeros<char>(100), zeros<char>(120), 120)

__global__ void filled_too_far(float* to, int n) {
    if (threadIdx.x == 0) std::memset(to, 0, n * sizeof(float));  // HAZARD out-of-bounds
}
CASE(filled_too_far, 1, 32, zeros<float>(100), 101)

static int* set_by_the_host(int* p) {
    p[3] = 5;  // HAZARD out-of-bounds/host-code
    return p;
}
__global__ void after_the_host(int* p) { p[threadIdx.x] += 1; }
CASE(after_the_host, 1, 32, set_by_the_host(zeros<int>(32)))
