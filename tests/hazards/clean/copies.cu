// Asynchronous copies and fragments as they should be used.
#include "../../../kernels/include/tensor_cores.cuh"
#include "../case.cuh"

__global__ void own_elements(const float4* in, float* out) {
    __shared__ float4 s[64];
    copy_async(&s[threadIdx.x], &in[threadIdx.x]);
    commit_copies();
    wait_for_copies<0>();
    out[threadIdx.x] = s[threadIdx.x].x;
}
CASE(own_elements, 1, 64, zeros<float4>(64), zeros<float>(64))

// The next stage is fetched while this one is in use.
__global__ void two_stages(const float4* in, float* out, int n) {
    __shared__ float4 s[2][64];
    copy_async(&s[0][threadIdx.x], &in[threadIdx.x]);
    commit_copies();
    float sum = 0;
    for (int i = 0; i < n; ++i) {
        if (i + 1 < n) copy_async(&s[(i + 1) % 2][threadIdx.x], &in[64 * (i + 1) + threadIdx.x]);
        commit_copies();
        wait_for_copies<1>();
        __syncthreads();
        sum += s[i % 2][threadIdx.x ^ 33].x;
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}
CASE(two_stages, 1, 64, zeros<float4>(64 * 5), zeros<float>(64), 5)

// One barrier a step: a stage is filled again behind the barrier that all its readers have come to.
__global__ void three_stages(const float4* in, float* out, int n) {
    __shared__ float4 s[3][64];
    for (int i = 0; i < 2; ++i) {
        copy_async(&s[i][threadIdx.x], &in[64 * i + threadIdx.x]);
        commit_copies();
    }
    float sum = 0;
    for (int i = 0; i < n; ++i) {
        wait_for_copies<1>();
        __syncthreads();
        const int next = i + 2;
        if (next < n) copy_async(&s[next % 3][threadIdx.x], &in[64 * next + threadIdx.x]);
        commit_copies();
        sum += s[i % 3][threadIdx.x ^ 33].x;
    }
    out[threadIdx.x] = sum;
}
CASE(three_stages, 1, 64, zeros<float4>(64 * 50), zeros<float>(64), 50)

// Of the ragged end only what there is is read; the rest becomes 0.
__global__ void ragged(const float* in, float* out, int n) {
    __shared__ float4 s[64];
    const int rest = n - 4 * threadIdx.x, bytes = rest <= 0 ? 0 : rest >= 4 ? 16 : 4 * rest;
    copy_async(&s[threadIdx.x], bytes ? in + 4 * threadIdx.x : in, bytes);
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x ^ 33].w;
}
CASE(ragged, 1, 64, zeros<float>(101), zeros<float>(64), 101)

__global__ void warp_waits_together(const float4* in, float* out) {
    __shared__ float4 s[32];
    copy_async(&s[threadIdx.x], &in[threadIdx.x]);
    commit_copies();
    wait_for_copies<0>();
    __syncwarp();
    out[threadIdx.x] = s[threadIdx.x ^ 1].x;
}
CASE(warp_waits_together, 1, 32, zeros<float4>(32), zeros<float>(32))

__global__ void fragments(const float4* in, float* out) {
    __shared__ __align__(16) float4 s[2][32];
    copy_async(&s[0][threadIdx.x], &in[threadIdx.x]);
    copy_async(&s[1][threadIdx.x], &in[threadIdx.x]);
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();
    unsigned a[4], b[4];
    load_matrices(a, &s[0][threadIdx.x]);
    load_transposed(b, &s[1][threadIdx.x]);
    const unsigned right[2] = {b[0], b[1]};
    float d[4] = {};
    mma_bf16(d, a, right);
    for (int i = 0; i < 4; ++i) out[32 * i + threadIdx.x] = d[i];
}
CASE(fragments, 1, 32, zeros<float4>(32), zeros<float>(128))
