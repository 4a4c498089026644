// __syncthreads and its _count, _and and _or forms; threads that leave early.
#include "expect.cuh"

__global__ void predicates(int n) {
    int i = threadIdx.x;
    EXPECT(__syncthreads_count(i % 3 == 0), (n + 2) / 3);
    EXPECT(__syncthreads_count(0), 0);
    EXPECT(__syncthreads_count(5), n);  // any value but 0 counts once
    EXPECT(__syncthreads_and(i >= 0) != 0, true);
    EXPECT(__syncthreads_and(i != n - 1) != 0, false);
    EXPECT(__syncthreads_or(i == n - 1) != 0, true);
    EXPECT(__syncthreads_or(i < 0) != 0, false);
}

// One launch alternates between the forms; no result leaks into the next barrier.
__global__ void in_turn() {
    __shared__ int round;
    for (int k = 0; k < 20; ++k) {
        if (threadIdx.x == 0) round = k;
        __syncthreads();  // `round` is written
        EXPECT(round, k);
        EXPECT(__syncthreads_count(int(threadIdx.x) < k), min(k, int(blockDim.x)));
    }
}

// A thread that has left the kernel is not waited for.
__global__ void early_return(int* out, int n) {
    __shared__ int tile[128];
    int i = threadIdx.x;
    if (i >= n) return;
    tile[i] = i;
    __syncthreads();  // the n threads that stayed have written
    out[i] = tile[n - 1 - i];
    EXPECT(__syncthreads_count(1), n);
}

// Whole warps leave one after the other.
__global__ void leave_in_turn(int* out) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();  // sum is 0
    for (int warp = blockDim.x / 32 - 1; warp > 0; --warp) {
        if (threadIdx.x / 32 == warp) {
            atomicAdd(&sum, 1);
            return;
        }
        __syncthreads();  // nobody but the warps up to `warp` is left
    }
    if (threadIdx.x == 0) *out = sum;
}

// Producer and consumer warps take turns through a barrier.
__global__ void take_turns(int* out) {
    __shared__ int box[32];
    for (int round = 0; round < 8; ++round) {
        if (threadIdx.x < 32) box[threadIdx.x] = round * 100 + threadIdx.x;
        __syncthreads();  // the box is full
        if (threadIdx.x >= 32) out[round * 32 + threadIdx.x - 32] = box[63 - threadIdx.x];
        __syncthreads();  // the box is empty
    }
}

int main() {
    for (int n : {1, 31, 32, 33, 100, 1024}) predicates<<<3, n>>>(n);
    in_turn<<<4, 96>>>();
    Buffer<int> out(256, -1);
    for (int n : {1, 31, 64, 100, 128}) {
        early_return<<<1, 128>>>(out.device, n);
        out.download();
        for (int i = 0; i < n; ++i) EXPECT(out[i], n - 1 - i);
    }
    leave_in_turn<<<1, 256>>>(out.device);
    out.download();
    EXPECT(out[0], 7 * 32);
    take_turns<<<1, 64>>>(out.device);
    out.download();
    for (int i = 0; i < 256; ++i) EXPECT(out[i], i / 32 * 100 + 31 - i % 32);
    return finish();
}
