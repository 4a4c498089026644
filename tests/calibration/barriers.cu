// Barriers and masks that do not fit: `barriers NAME` runs one of them. synccheck has a word on
// each but those that it cannot see; those would hang a GPU and are not here.
#include "buffers.cuh"

#include <cstring>

__global__ void barrier_in_half_a_warp(float* data) {
    if (threadIdx.x < 16) __syncthreads();
    data[threadIdx.x] = 1;
}
__global__ void barrier_by_lane(float* data) {
    if (threadIdx.x % 2) {
        data[threadIdx.x] = 1;
        __syncthreads();
    } else {
        data[threadIdx.x] = 2;
        __syncthreads();
    }
}
__global__ void barrier_in_loop_of_own_length(float* data) {
    for (int k = 0; k < threadIdx.x % 4 + 1; k++) {
        data[threadIdx.x] += k;
        __syncthreads();
    }
}
__global__ void shuffle_outside_mask(int* data) {
    data[threadIdx.x] = __shfl_sync(0x0000ffff, data[threadIdx.x], 0);
}
__global__ void syncwarp_outside_mask(int* data) {
    if (threadIdx.x < 16) __syncwarp(0xffff0000);
    data[threadIdx.x] = 1;
}
__global__ void vote_outside_mask(int* data) {
    data[threadIdx.x] = __ballot_sync(0x7fffffff, data[threadIdx.x]);
}
__global__ void fine_early_return(float* data) {  // those that have left are not waited for
    if (threadIdx.x >= 32) return;
    data[threadIdx.x] = 1;
    __syncthreads();
    data[threadIdx.x] = 2;
}
__global__ void fine_uniform_branch(float* data) {
    if (blockIdx.x == 0) __syncthreads();
    data[threadIdx.x] = 1;
}
__global__ void fine_half_mask(int* data) {
    if (threadIdx.x < 16) data[threadIdx.x] = __shfl_sync(0x0000ffff, data[threadIdx.x], 0);
}

int main(int argc, char** argv) {
    const char* name = argc > 1 ? argv[1] : "";
    float* data = filled(64);
    int* numbers = filled<int>(64);
    auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
    if (is("barrier_in_half_a_warp")) barrier_in_half_a_warp<<<1, 32>>>(data);
    else if (is("barrier_by_lane")) barrier_by_lane<<<1, 32>>>(data);
    else if (is("barrier_in_loop_of_own_length")) barrier_in_loop_of_own_length<<<1, 32>>>(data);
    else if (is("shuffle_outside_mask")) shuffle_outside_mask<<<1, 32>>>(numbers);
    else if (is("syncwarp_outside_mask")) syncwarp_outside_mask<<<1, 32>>>(numbers);
    else if (is("vote_outside_mask")) vote_outside_mask<<<1, 32>>>(numbers);
    else if (is("fine_early_return")) fine_early_return<<<1, 64>>>(data);
    else if (is("fine_uniform_branch")) fine_uniform_branch<<<1, 64>>>(data);
    else if (is("fine_half_mask")) fine_half_mask<<<1, 32>>>(numbers);
    else return std::printf("there is no '%s'\n", name), 2;
    check(cudaDeviceSynchronize());
}
