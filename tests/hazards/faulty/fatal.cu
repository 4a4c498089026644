// Faults that end the launch.
#include <cassert>

#include "../case.cuh"

__global__ void null_pointer(int* p) {
    p[threadIdx.x] = 1;  // HAZARD out-of-bounds
}
CASE(null_pointer, 1, 32, nullptr)

__global__ void wild_pointer(long long* p) {
    long long* q = reinterpret_cast<long long*>(0x5a5a5a5a5a5a5a58);
    p[threadIdx.x] = q[threadIdx.x];  // HAZARD out-of-bounds
}
CASE(wild_pointer, 1, 32, zeros<long long>(32))

__global__ void very_far(int* p) {
    p[1ll << 44] = 1;  // HAZARD out-of-bounds
}
CASE(very_far, 1, 1, zeros<int>(32))

__global__ void race_before_wild(int* p, int* wild) {
    p[0] = threadIdx.x;                  // HAZARD race/stores
    if (threadIdx.x == 31) wild[5] = 1;  // HAZARD out-of-bounds
}
CASE(race_before_wild, 1, 32, zeros<int>(1), nullptr)

__global__ void endless(int* p) {
    int x = 1;
    while (x) x = p[threadIdx.x] + 1;  // HAZARD timeout
    p[threadIdx.x] = x;
}
CASE(endless, 1, 32, zeros<int>(32))

__global__ void race_before_endless(volatile int* p) {
    p[0] = threadIdx.x;  // HAZARD race/stores
    if (threadIdx.x == 31)
        for (unsigned x = 1; x != 1 << 31; x = 5 * x + 1) p[1];  // HAZARD timeout
}
CASE(race_before_endless, 1, 32, zeros<int>(2))

__device__ int descend(int n) {  // HAZARD stack-overflow
    volatile int room[8192];
    room[n] = n;
    return room[n] + descend(room[n] + 1) + room[0];
}
__global__ void too_deep(int* out) { out[0] = descend(out[1]); }
CASE(too_deep, 1, 1, zeros<int>(2))

__device__ float sum_of(const float* x, int n) {  // HAZARD stack-overflow/recursion
    return n ? x[n - 1] + sum_of(x, n - 1) : 0.0f;
}
__global__ void deeper_than_a_card(const float* x, float* out) {
    out[threadIdx.x] = sum_of(x, 140);
}
CASE(deeper_than_a_card, 1, 32, zeros<float>(140), zeros<float>(32))

__global__ void sets_memory_itself(int* p) {
    if (threadIdx.x == 0) cudaMemset(p, 0, sizeof(int));  // HAZARD host-call
    p[threadIdx.x] += 1;
}
CASE(sets_memory_itself, 1, 32, zeros<int>(32))

__global__ void asserts(int* p) {
    assert(p[threadIdx.x] == 1);  // HAZARD assert
}
CASE(asserts, 1, 32, zeros<int>(32))

__global__ void traps(int* p) {
    if (p[threadIdx.x] == 0) __trap();  // HAZARD trap
}
CASE(traps, 1, 32, zeros<int>(32))

__global__ void divides_by_zero(int* p) {
    p[threadIdx.x] = 7 / p[threadIdx.x];  // HAZARD crash
}
CASE(divides_by_zero, 1, 32, zeros<int>(32))

__global__ void too_much_shared(float* p) {
    __shared__ float s[13 * 1024];  // HAZARD shared-memory
    s[threadIdx.x] = 1;
    p[threadIdx.x] = s[threadIdx.x];
}
CASE(too_much_shared, 1, 32, zeros<float>(32))
