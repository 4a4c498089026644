// Run with --volatile-atomic: what races all the same.
#include "../case.cuh"

__global__ void data_behind_a_flag(int* out) {
    __shared__ volatile int ready;
    __shared__ int data;
    if (threadIdx.x == 0) ready = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        data = 42;  // HAZARD race
        ready = 1;
    } else if (threadIdx.x == 40) {
        while (!ready) {
        }
        out[0] = data;  // WITH
    }
}
CASE(data_behind_a_flag, 1, 64, zeros<int>(1))

__global__ void volatile_against_plain(volatile int* flag, int* out) {
    if (threadIdx.x == 0) *flag = 1;                                // HAZARD race/atomic
    if (threadIdx.x == 33) out[0] = *const_cast<const int*>(flag);  // WITH
}
CASE(volatile_against_plain, 1, 64, zeros<int>(1), zeros<int>(1))

__global__ void plain_store_against_volatile_read(int* flag, int* out) {
    if (threadIdx.x == 0) out[0] = *(volatile int*)flag;  // HAZARD race/atomic
    if (threadIdx.x == 33) *flag = 1;                     // WITH
}
CASE(plain_store_against_volatile_read, 1, 64, zeros<int>(1), zeros<int>(1))
