// Branches, loops and warps that are not full.
#include "buffers.cuh"

__device__ int index() { return blockIdx.x * blockDim.x + threadIdx.x; }

__global__ void two_sides(const float* a, const float* b, float* out) {
    if (threadIdx.x % 2) out[index()] = a[index()] * 3;
    else out[index()] = b[index()] + 5;
}
__global__ void sides_by_warp(const float* a, const float* b, float* out) {
    if (threadIdx.x / 32 % 2) out[index()] = a[index()] * 3;
    else out[index()] = b[index()] + 5;
}
__global__ void four_cases(const int* which, const float* in, float* out) {
    const int i = index();
    switch (which[i]) {
        case 0: out[i] = in[i] * 2; break;
        case 1: out[i + 1024] = in[i] + 2; break;
        case 2: out[2 * i + 2048] = in[i] - 2; break;
        default: out[i + 512] = in[4 * i];
    }
}
__global__ void early_return(const float* in, float* out, int n) {
    if (index() >= n) return;
    out[index()] = in[index()];
}
__global__ void trip_counts_by_lane(const float* in, float* out) {
    float sum = 0;
    for (int k = 0; k < threadIdx.x % 32; k++) sum += in[k * 32 + threadIdx.x % 32];
    out[index()] = sum;
}
__global__ void trip_counts_by_warp(const float* in, float* out) {
    float sum = 0;
    for (int k = 0; k < threadIdx.x / 32 + 1; k++) sum += in[k * 256 + threadIdx.x];
    out[index()] = sum;
}
__global__ void loop_from_own_start(const float* in, float* out) {  // triangle
    float sum = 0;
    for (int k = threadIdx.x % 32; k < 32; k++) sum += in[k];
    out[index()] = sum;
}
__global__ void loop_with_break(const int* in, int* out) {
    int k = 0;
    while (in[index() + 256 * k] % 5 != 0 && k < 6) k++;
    out[index()] = k;
}
__global__ void fixed_loop(const float* in, float* out) {
    float sum = 0;
    for (int k = 0; k < 4; k++) sum += in[4 * index() + k];
    out[index()] = sum;
}
__global__ void grid_stride(const float* in, float* out, int n) {
    for (int i = index(); i < n; i += gridDim.x * blockDim.x) out[i] = 2 * in[i];
}
__global__ void two_loops(const float* in, float* out, int n) {
    float most = in[threadIdx.x];
    for (int i = threadIdx.x; i < n; i += blockDim.x) most = fmaxf(most, in[i]);
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += in[i] - most;
    out[threadIdx.x] = sum;
}
__global__ void nested_loops(const float* in, float* out, int rows) {
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        float sum = 0;
        for (int col = threadIdx.x; col < 96; col += 32) sum += in[row * 96 + col];
        for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(0xffffffff, sum, other);
        if (threadIdx.x == 0) out[row] = sum;
    }
}
__global__ void compacted(const int* in, int* out) {  // lanes that pass store side by side
    const bool keep = in[index()] % 3 == 0;
    const unsigned votes = __ballot_sync(0xffffffff, keep);
    const int before = __popc(votes & ((1u << threadIdx.x % 32) - 1));
    if (keep) out[index() / 32 * 32 + before] = in[index()];
}
__global__ void only_first_thread(const float* in, float* out, int n) {
    if (index() != 0) return;
    float sum = 0;
    for (int i = 0; i < n; i++) sum += in[i];
    out[0] = sum;
}

int main() {
    const float* in = filled(8 * 1024);
    const int* numbers = filled<int>(8 * 1024);
    const int* which = filled<int>(256, [](int i) { return i * 5 % 4; });
    float* out = filled(8 * 1024);
    two_sides<<<2, 128>>>(in, in + 1024, out);
    sides_by_warp<<<2, 128>>>(in, in + 1024, out);
    four_cases<<<2, 128>>>(which, in, out);
    early_return<<<2, 128>>>(in, out, 200);
    trip_counts_by_lane<<<2, 128>>>(in, out);
    trip_counts_by_warp<<<2, 128>>>(in, out);
    loop_from_own_start<<<2, 128>>>(in, out);
    loop_with_break<<<2, 128>>>(numbers, (int*)out);
    fixed_loop<<<2, 128>>>(in, out);
    grid_stride<<<2, 128>>>(in, out, 1000);
    two_loops<<<1, 128>>>(in, out, 1000);
    nested_loops<<<2, 32>>>(in, out, 5);
    compacted<<<2, 128>>>(numbers, (int*)out);
    only_first_thread<<<2, 128>>>(in, out, 40);
    check(cudaDeviceSynchronize());
}
