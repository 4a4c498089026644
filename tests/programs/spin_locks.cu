// A lock that every thread of a block takes in turn, by compare-and-swap.
#include "check.cuh"

__device__ int lock;

__global__ void count(int* total) {
    while (atomicCAS(&lock, 0, 1) != 0) __nanosleep(20);
    __threadfence();
    volatile int* shown = total;
    *shown = *shown + int(threadIdx.x);
    __threadfence();
    atomicExch(&lock, 0);
}
__global__ void count_without_sleep(int* total) {
    bool done = false;
    while (!done)
        if (atomicCAS(&lock, 0, 1) == 0) {
            __threadfence();
            volatile int* shown = total;
            *shown = *shown + 1;
            __threadfence();
            atomicExch(&lock, 0);
            done = true;
        }
}

int main() {
    int* total = to_device(std::vector<int>(2));
    count<<<2, 64>>>(total);
    count_without_sleep<<<2, 64>>>(total + 1);
    const std::vector<int> got = to_host(total, 2);
    return verdict("spin_locks", (got[0] != 2 * 63 * 32) + (got[1] != 128));
}
