// Loads and stores of global memory: widths, strides, offsets, who takes part.
// Each kernel is launched once, in this order; its name says what it does.
#include "buffers.cuh"

constexpr int THREADS = 1024;  // of most kernels: 4 blocks of 256

__device__ int index() { return blockIdx.x * blockDim.x + threadIdx.x; }

// --- widths
// ---------------------------------------------------------------------------------------
__global__ void copy_1_byte(const char* in, char* out) { out[index()] = in[index()]; }
__global__ void copy_2_bytes(const short* in, short* out) { out[index()] = in[index()]; }
__global__ void copy_4_bytes(const float* in, float* out) { out[index()] = in[index()]; }
__global__ void copy_8_bytes(const double* in, double* out) { out[index()] = in[index()]; }
__global__ void copy_float2(const float2* in, float2* out) { out[index()] = in[index()]; }
__global__ void copy_float4(const float4* in, float4* out) { out[index()] = in[index()]; }

// --- strides
// --------------------------------------------------------------------------------------
__global__ void load_stride_2(const float* in, float* out) { out[index()] = in[2 * index()]; }
__global__ void load_stride_4(const float* in, float* out) { out[index()] = in[4 * index()]; }
__global__ void load_stride_8(const float* in, float* out) { out[index()] = in[8 * index()]; }
__global__ void load_stride_16(const float* in, float* out) { out[index()] = in[16 * index()]; }
__global__ void load_stride_32(const float* in, float* out) { out[index()] = in[32 * index()]; }
__global__ void load_stride_33(const float* in, float* out) { out[index()] = in[33 * index()]; }
__global__ void store_stride_2(const float* in, float* out) { out[2 * index()] = in[index()]; }
__global__ void store_stride_8(const float* in, float* out) { out[8 * index()] = in[index()]; }
__global__ void store_stride_33(const float* in, float* out) { out[33 * index()] = in[index()]; }
__global__ void float4_stride_2(const float4* in, float4* out) { out[index()] = in[2 * index()]; }
__global__ void float2_stride_4(const float2* in, float2* out) { out[index()] = in[4 * index()]; }

// --- offsets
// --------------------------------------------------------------------------------------
__global__ void load_off_by_4_bytes(const float* in, float* out) { out[index()] = in[index() + 1]; }
__global__ void load_off_by_16_bytes(const float* in, float* out) {
    out[index()] = in[index() + 4];
}
__global__ void load_off_by_32_bytes(const float* in, float* out) {
    out[index()] = in[index() + 8];
}
__global__ void store_off_by_4_bytes(const float* in, float* out) {
    out[index() + 1] = in[index()];
}
__global__ void store_off_by_16_bytes(const float* in, float* out) {
    out[index() + 4] = in[index()];
}
__global__ void float4_off_by_16_bytes(const float4* in, float4* out) {
    out[index()] = in[index() + 1];
}

// --- who reads what
// -------------------------------------------------------------------------------
__global__ void broadcast(const float* in, float* out) { out[index()] = in[7]; }
__global__ void broadcast_by_warp(const float* in, float* out) {
    out[index()] = in[index() / 32 * 8];
}
__global__ void reversed(const float* in, float* out) { out[THREADS - 1 - index()] = in[index()]; }
__global__ void permuted_in_warp(const float* in, float* out) { out[index()] = in[index() ^ 13]; }
__global__ void half_warp(const float* in, float* out) {
    if (index() % 32 < 16) out[index()] = in[index()];
}
__global__ void odd_lanes(const float* in, float* out) {
    if (index() % 2) out[index()] = in[index()];
}
__global__ void one_lane(const float* in, float* out) {
    if (index() % 32 == 5) out[index()] = in[index()];
}
__global__ void blocks_of_48(const float* in, float* out) { out[index()] = in[index()]; }
__global__ void blocks_of_1(const float* in, float* out) { out[index()] = in[index()]; }
__global__ void guarded(const float* in, float* out, int n) {
    if (index() < n) out[index()] = in[index()];
}
__global__ void gather(const int* where, const float* in, float* out) {
    out[index()] = in[where[index()]];
}
__global__ void scatter(const int* where, const float* in, float* out) {
    out[where[index()]] = in[index()];
}

// --- structures
// -----------------------------------------------------------------------------------
struct Particle {
    float x, y, z;
};
__global__ void array_of_structures(const Particle* in, float* out) {
    const Particle& p = in[index()];
    out[index()] = p.x * p.y + p.z;
}
__global__ void structure_of_arrays(const float* x, const float* y, const float* z, float* out) {
    out[index()] = x[index()] * y[index()] + z[index()];
}

// --- matrices, 64 x 64
// ----------------------------------------------------------------------------
constexpr int SIDE = 64;
__global__ void rows(const float* in, float* out) {  // neighbours read along a row
    const int row = blockIdx.y * blockDim.y + threadIdx.y, col = index();
    out[row * SIDE + col] = in[row * SIDE + col];
}
__global__ void columns(const float* in, float* out) {  // neighbours walk down a column
    const int col = blockIdx.y * blockDim.y + threadIdx.y, row = index();
    out[row * SIDE + col] = in[row * SIDE + col];
}
__global__ void blocks_of_16_by_16(const float* in, float* out) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y, col = index();
    out[row * SIDE + col] = in[row * SIDE + col];
}
__global__ void blocks_of_8_by_8(const float* in, float* out) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y, col = index();
    out[row * SIDE + col] = in[row * SIDE + col];
}
__global__ void transpose_naive(const float* in, float* out) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y, col = index();
    out[col * SIDE + row] = in[row * SIDE + col];
}
__global__ void sum_of_each_row(const float* in, float* out) {  // a thread has a row
    float sum = 0;
    for (int k = 0; k < SIDE; k++) sum += in[index() * SIDE + k];
    out[index()] = sum;
}
__global__ void sum_of_each_column(const float* in, float* out) {
    float sum = 0;
    for (int k = 0; k < SIDE; k++) sum += in[k * SIDE + index()];
    out[index()] = sum;
}

// --- other ways to memory
// -------------------------------------------------------------------------
__device__ float table[THREADS];
__constant__ float factors[32];
__global__ void device_array(float* out) { out[index()] = table[index()]; }
__global__ void constant_memory(const float* in, float* out) {
    out[index()] = in[index()] * factors[3];
}
__global__ void read_only(const float* __restrict__ in, float* out) {
    out[index()] = __ldg(in + index());
}
__global__ void in_place(float* data) { data[index()] *= 2; }

int main() {
    const float* in = filled(34 * THREADS);
    float* out = filled(34 * THREADS);
    copy_1_byte<<<4, 256>>>(filled<char>(THREADS), filled<char>(THREADS));
    copy_2_bytes<<<4, 256>>>(filled<short>(THREADS), filled<short>(THREADS));
    copy_4_bytes<<<4, 256>>>(in, out);
    copy_8_bytes<<<4, 256>>>((const double*)in, (double*)out);
    copy_float2<<<4, 256>>>((const float2*)in, (float2*)out);
    copy_float4<<<4, 256>>>((const float4*)in, (float4*)out);
    load_stride_2<<<4, 256>>>(in, out);
    load_stride_4<<<4, 256>>>(in, out);
    load_stride_8<<<4, 256>>>(in, out);
    load_stride_16<<<4, 256>>>(in, out);
    load_stride_32<<<4, 256>>>(in, out);
    load_stride_33<<<4, 256>>>(in, out);
    store_stride_2<<<4, 256>>>(in, out);
    store_stride_8<<<4, 256>>>(in, out);
    store_stride_33<<<4, 256>>>(in, out);
    float4_stride_2<<<4, 256>>>((const float4*)in, (float4*)out);
    float2_stride_4<<<4, 256>>>((const float2*)in, (float2*)out);
    load_off_by_4_bytes<<<4, 256>>>(in, out);
    load_off_by_16_bytes<<<4, 256>>>(in, out);
    load_off_by_32_bytes<<<4, 256>>>(in, out);
    store_off_by_4_bytes<<<4, 256>>>(in, out);
    store_off_by_16_bytes<<<4, 256>>>(in, out);
    float4_off_by_16_bytes<<<4, 256>>>((const float4*)in, (float4*)out);
    broadcast<<<4, 256>>>(in, out);
    broadcast_by_warp<<<4, 256>>>(in, out);
    reversed<<<4, 256>>>(in, out);
    permuted_in_warp<<<4, 256>>>(in, out);
    half_warp<<<4, 256>>>(in, out);
    odd_lanes<<<4, 256>>>(in, out);
    one_lane<<<4, 256>>>(in, out);
    blocks_of_48<<<10, 48>>>(in, out);
    blocks_of_1<<<10, 1>>>(in, out);
    guarded<<<4, 256>>>(in, out, 1000);
    const int* where = filled<int>(THREADS, [](int i) { return i * 389 % THREADS; });
    gather<<<4, 256>>>(where, in, out);
    scatter<<<4, 256>>>(where, in, out);
    array_of_structures<<<4, 256>>>((const Particle*)in, out);
    structure_of_arrays<<<4, 256>>>(in, in + THREADS, in + 2 * THREADS, out);
    rows<<<dim3(2, 8), dim3(32, 8)>>>(in, out);
    columns<<<dim3(2, 8), dim3(32, 8)>>>(in, out);
    blocks_of_16_by_16<<<dim3(4, 4), dim3(16, 16)>>>(in, out);
    blocks_of_8_by_8<<<dim3(8, 8), dim3(8, 8)>>>(in, out);
    transpose_naive<<<dim3(2, 8), dim3(32, 8)>>>(in, out);
    sum_of_each_row<<<1, SIDE>>>(in, out);
    sum_of_each_column<<<1, SIDE>>>(in, out);
    device_array<<<4, 256>>>(out);
    constant_memory<<<4, 256>>>(in, out);
    read_only<<<4, 256>>>(in, out);
    in_place<<<4, 256>>>(out);
    check(cudaDeviceSynchronize());
}
