// Asynchronous copies that nobody waits for as they should, and fragments read amiss.
#include "../../../kernels/include/tensor_cores.cuh"
#include <cuda_pipeline.h>

#include "../case.cuh"

__global__ void read_before_the_wait(const float4* in, float* out) {
    __shared__ float4 s[64];
    copy_async(&s[threadIdx.x], &in[threadIdx.x]);  // WITH
    commit_copies();
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x ^ 1].x;  // HAZARD early-read
    wait_for_copies<0>();
}
CASE(read_before_the_wait, 1, 64, zeros<float4>(64), zeros<float>(64))

__global__ void own_element_before_the_wait(const float4* in, float* out) {
    __shared__ float4 s[64];
    copy_async(&s[threadIdx.x], &in[threadIdx.x]);  // WITH
    commit_copies();
    out[threadIdx.x] = s[threadIdx.x].x;  // HAZARD early-read
    wait_for_copies<0>();
}
CASE(own_element_before_the_wait, 1, 64, zeros<float4>(64), zeros<float>(64))

__global__ void waits_and_has_not_committed(const float4* in, float* out) {
    __shared__ float4 s[64];
    copy_async(&s[threadIdx.x], &in[threadIdx.x]);  // WITH
    wait_for_copies<0>();
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x ^ 1].x;  // HAZARD missing-commit
}
CASE(waits_and_has_not_committed, 1, 64, zeros<float4>(64), zeros<float>(64))

__global__ void waits_for_all_but_the_one_it_needs(const float4* in, float* out) {
    __shared__ float4 s[2][64];
    copy_async(&s[0][threadIdx.x], &in[threadIdx.x]);
    commit_copies();
    copy_async(&s[1][threadIdx.x], &in[64 + threadIdx.x]);  // WITH
    commit_copies();
    wait_for_copies<1>();
    __syncthreads();
    out[threadIdx.x] = s[0][threadIdx.x ^ 1].x;
    out[threadIdx.x] += s[1][threadIdx.x ^ 1].x;  // HAZARD early-read
}
CASE(waits_for_all_but_the_one_it_needs, 1, 64, zeros<float4>(128), zeros<float>(64))

__global__ void no_barrier_behind_the_wait(const float4* in, float* out) {
    __shared__ float4 s[64];
    copy_async(&s[threadIdx.x], &in[threadIdx.x]);  // WITH
    commit_copies();
    wait_for_copies<0>();
    out[threadIdx.x] = s[threadIdx.x ^ 32].x;  // HAZARD async-race
}
CASE(no_barrier_behind_the_wait, 1, 64, zeros<float4>(64), zeros<float>(64))

__global__ void writes_what_a_copy_brings(const float4* in, float* out) {
    __shared__ float4 s[64];
    copy_async(&s[threadIdx.x], &in[threadIdx.x]);  // WITH
    commit_copies();
    s[threadIdx.x].y = 1.0f;  // HAZARD early-write
    wait_for_copies<0>();
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x ^ 1].x;
}
CASE(writes_what_a_copy_brings, 1, 64, zeros<float4>(64), zeros<float>(64))

__global__ void fills_a_stage_that_is_being_read(const float4* in, float* out) {
    __shared__ float4 s[64];
    float sum = 0;
    for (int i = 0; i < 3; ++i) {
        copy_async(&s[threadIdx.x], &in[64 * i + threadIdx.x]);  // HAZARD async-race
        commit_copies();
        wait_for_copies<0>();
        __syncthreads();
        sum += s[threadIdx.x ^ 32].x;  // WITH
    }
    out[threadIdx.x] = sum;
}
CASE(fills_a_stage_that_is_being_read, 1, 64, zeros<float4>(192), zeros<float>(64))

__global__ void pipeline_without_a_wait(const float4* in, float* out) {
    __shared__ float4 s[64];
    __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x], 16);  // WITH
    __pipeline_commit();
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x ^ 1].x;  // HAZARD early-read
}
CASE(pipeline_without_a_wait, 1, 64, zeros<float4>(64), zeros<float>(64))

__global__ void copies_to_an_odd_place(const float* in, float* out) {
    __shared__ float s[64];
    copy_async(&s[1], in);  // HAZARD misaligned
    commit_copies();
    wait_for_copies<0>();
    out[threadIdx.x] = s[1];
}
CASE(copies_to_an_odd_place, 1, 1, zeros<float>(64), zeros<float>(64))

__global__ void copies_from_beyond_the_end(const float4* in, float4* out) {
    __shared__ float4 s[64];
    copy_async(&s[threadIdx.x], &in[threadIdx.x]);  // HAZARD out-of-bounds
    commit_copies();
    wait_for_copies<0>();
    out[threadIdx.x] = s[threadIdx.x];
}
CASE(copies_from_beyond_the_end, 1, 64, zeros<float4>(60), zeros<float4>(64))

__global__ void less_than_nothing_is_left(const float4* in, float4* out, int n) {
    __shared__ float4 s[64];
    const int left = n - 4 * int(threadIdx.x);
    copy_async(&s[threadIdx.x], &in[threadIdx.x], left < 4 ? 4 * left : 16);  // HAZARD invalid-copy
    commit_copies();
    wait_for_copies<0>();
    out[threadIdx.x] = s[threadIdx.x];
}
CASE(less_than_nothing_is_left, 1, 64, zeros<float4>(64), zeros<float4>(64), 100)

__global__ void matrices_nobody_has_written(unsigned* out) {
    __shared__ __align__(16) __half s[32][8];
    if (threadIdx.x < 24) *reinterpret_cast<float4*>(s[threadIdx.x]) = make_float4(1, 2, 3, 4);
    __syncthreads();
    unsigned matrices[4];
    load_matrices(matrices, s[threadIdx.x]);  // HAZARD uninitialized
    out[threadIdx.x] = matrices[0] + matrices[3];
}
CASE(matrices_nobody_has_written, 1, 32, zeros<unsigned>(32))

__global__ void rows_of_an_odd_pitch(unsigned* out) {
    __shared__ __align__(16) __half s[33 * 9];
    for (int i = threadIdx.x; i < 33 * 9; i += 32) s[i] = __float2half(1.0f);
    __syncthreads();
    unsigned matrices[4];
    load_matrices(matrices, &s[threadIdx.x * 9]);  // HAZARD misaligned
    out[threadIdx.x] = matrices[0];
}
CASE(rows_of_an_odd_pitch, 1, 32, zeros<unsigned>(32))

__global__ void matrices_of_another_warp(unsigned* out) {
    __shared__ __align__(16) unsigned s[64][4];
    for (int i = 0; i < 4; ++i) s[threadIdx.x][i] = i;  // WITH
    unsigned matrices[4];
    load_matrices(matrices, s[threadIdx.x ^ 32]);  // HAZARD race
    out[threadIdx.x] = matrices[0];
}
CASE(matrices_of_another_warp, 1, 64, zeros<unsigned>(64))

__global__ void block_ends_within_the_warp(float* out) {
    unsigned a[4] = {}, b[2] = {};
    float d[4] = {};
    mma_bf16(d, a, b);  // HAZARD invalid-mask
    out[threadIdx.x] = d[0];
}
CASE(block_ends_within_the_warp, 1, 16, zeros<float>(32))

__global__ void product_of_half_a_warp(float* out) {
    unsigned a[4] = {}, b[2] = {};
    float d[4] = {};
    if (threadIdx.x < 16) mma_f16(d, a, b);  // HAZARD deadlock
    __syncthreads();                         // WITH
    out[threadIdx.x] = d[0];
}
CASE(product_of_half_a_warp, 1, 32, zeros<float>(32))
