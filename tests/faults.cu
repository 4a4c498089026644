// One kernel for each way to go wrong; the argument says which to run. The line at fault ends in a
// comment with its name. (Not for nvcc: a GPU would hang, or the compiler refuse.)
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void half_at_barrier() {
    if (threadIdx.x < 16) __syncthreads();  // deadlock, first place
    else __syncwarp();                      // deadlock, second place
}
__global__ void lane_never_comes(int* x) {
    if (threadIdx.x == 7) __syncthreads();
    else x[threadIdx.x] = __shfl_sync(0xffffffff, x[threadIdx.x], 0);  // deadlock-warp
}
__global__ void two_barriers(int* x) {
    if (threadIdx.x % 2) {
        __syncthreads();  // two-barriers, odd
        x[0] = 1;
    } else {
        __syncthreads();  // two-barriers, even
    }
}
__global__ void not_in_mask(int* x) {
    if (threadIdx.x < 4) x[threadIdx.x] = __shfl_sync(0x7, 1, 0);  // invalid-mask
}
__global__ void absent_source() {
    if (threadIdx.x >= 4) return;
    const float got = __shfl_sync(0xf, 1.0f, threadIdx.x == 1 ? 9 : 2);
    printf("lane %d: %s\n", int(threadIdx.x), got != got ? "NaN" : got == 1 ? "1" : "?");
}
__global__ void masks_differ(int* x) {
    const unsigned mask = threadIdx.x == 3 ? 0x0fffffff : 0xffffffff;
    x[threadIdx.x] = __ballot_sync(mask, 1);  // masks-differ
}
__global__ void store_to_nothing(int* x) {
    if (blockIdx.x == 2 && threadIdx.y == 5) *(volatile int*)8 = 1;  // illegal-address
}
__device__ void deeper(volatile char* above, int depth) {
    volatile char local[1000];
    local[depth % 1000] = above[0];
    deeper(local, depth + 1);  // stack-overflow
    above[1] = local[depth % 1000];
}
__global__ void endless_recursion() {
    char top[2] = {};
    if (threadIdx.x == 1) deeper(top, 0);
}
__global__ void divide(int* x, int by) {
    if (threadIdx.x == 9) x[0] = 100 / by;  // division
}
__global__ void endless(volatile int* flag) {
    while (threadIdx.x == 2 && *flag == 0) continue;  // timeout
}
__device__ void leave_addresses() {  // of code, on the stack: of no call that has yet to return
    volatile const void* addresses[2048];
    for (auto& address : addresses) address = (const char*)endless + 1;
}
__global__ void print_nothing(const char* text) {
    leave_addresses();
    printf("%s", text);  // in-library
    printf("behind");
}
__global__ void failed_assertion(int n) {
    assert(int(threadIdx.x) < n);  // assert
}
__global__ void trapped() {
    if (threadIdx.x == 1) __trap();  // trap
}
__global__ void too_much_shared(float* out) {
    __shared__ float fits[8 * 1024];
    __shared__ float does_not[5 * 1024];  // shared-memory
    fits[threadIdx.x] = does_not[threadIdx.x] = 1;
    *out = fits[0];
}
__global__ void child() {}
__global__ void parent() {
    if (threadIdx.x == 4) child<<<1, 1>>>();  // not-supported
}

int main(int argc, char** argv) {
    const char* name = argc > 1 ? argv[1] : "";
    const auto is = [&](const char* fault) { return strcmp(name, fault) == 0; };
    int* x;
    cudaMalloc(&x, 1024 * sizeof(int));
    cudaMemset(x, 0, 1024 * sizeof(int));
    printf("before\n");
    if (is("deadlock")) half_at_barrier<<<1, 32>>>();
    if (is("deadlock-warp")) lane_never_comes<<<1, 32>>>(x);
    if (is("two-barriers")) two_barriers<<<1, 32>>>(x);
    if (is("invalid-mask")) not_in_mask<<<1, 32>>>(x);
    if (is("absent-source")) absent_source<<<1, 32>>>();
    if (is("masks-differ")) masks_differ<<<1, 32>>>(x);
    if (is("illegal-address")) store_to_nothing<<<4, dim3(4, 8)>>>(x);
    if (is("stack-overflow")) endless_recursion<<<1, 32>>>();
    if (is("division")) divide<<<1, 32>>>(x, 0);
    if (is("in-library")) print_nothing<<<1, 1>>>((const char*)16);
    if (is("timeout")) endless<<<1, 32>>>(x);
    if (is("assert")) failed_assertion<<<2, 32>>>(20);
    if (is("trap")) trapped<<<1, 32>>>();
    if (is("shared-memory")) too_much_shared<<<1, 32>>>((float*)x);
    if (is("not-supported")) parent<<<1, 32>>>();
    if (is("host-crash")) *(volatile int*)16 = 1;  // host-crash
    if (is("host-abort")) abort();                 // host-abort
    if (is("host-loop"))
        for (volatile int* v = x;;) *v += 1;  // host-loop
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    printf("%s\n", cudaGetErrorName(cudaGetLastError()));
    child<<<1, 1>>>();  // does a later launch run?
    printf("%s\n", cudaGetErrorName(cudaGetLastError()));
    return 0;
}
