// Races by the letter that are harmless as long as all store the same value: told more mildly.
#include "../case.cuh"

__global__ void all_set_the_flag(const int* in, int* flag) {
    if (in[threadIdx.x] == 0) *flag = 1;  // HAZARD race/same-value
}
CASE(all_set_the_flag, 1, 64, zeros<int>(64), zeros<int>(1))

__global__ void every_block_sets_the_flag(int* flag) {
    if (threadIdx.x == 0) *flag = 1;  // HAZARD race/same-value
}
CASE(every_block_sets_the_flag, 3, 32, zeros<int>(1))

__global__ void same_value_on_two_lines(int* out) {
    __shared__ int s;
    if (threadIdx.x % 2) s = 4;  // HAZARD race/same-value
    out[threadIdx.x] = 0;
    if (threadIdx.x % 2 == 0) s = 4;  // WITH
    __syncthreads();
    out[threadIdx.x] = s;
}
CASE(same_value_on_two_lines, 1, 32, zeros<int>(32))

__global__ void all_clear_the_tile(float4* out) {
    __shared__ float4 tile[4];
    tile[threadIdx.x % 4] = make_float4(0, 0, 0, 0);  // HAZARD race/same-value
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x / 16];
}
CASE(all_clear_the_tile, 1, 64, zeros<float4>(64))
