// Blocks of one launch that wait for each other: each makes every so many-th row, tells of it in a
// counter, and adds up all rows when the counter says that they are there.
#include "check.cuh"

constexpr int ROWS = 40, COLS = 32;

__global__ void make_and_add(float* rows, int* ready, float* sums) {
    for (int r = blockIdx.x; r < ROWS; r += gridDim.x) {
        rows[r * COLS + threadIdx.x] = float(r);
        __threadfence();
        atomicAdd(ready, 1);
    }
    while (atomicAdd(ready, 0) < ROWS * COLS) __nanosleep(64);
    __threadfence();
    float sum = 0;
    for (int r = 0; r < ROWS; ++r) sum += rows[r * COLS + threadIdx.x];
    sums[blockIdx.x * COLS + threadIdx.x] = sum;
}

int main() {
    const int blocks = 7;
    float* rows = to_device(std::vector<float>(ROWS * COLS));
    float* sums = to_device(std::vector<float>(blocks * COLS));
    int* ready = to_device(std::vector<int>(1));
    void* arguments[] = {&rows, &ready, &sums};
    CHECK(cudaLaunchCooperativeKernel((void*)make_and_add, dim3(blocks), dim3(COLS), arguments, 0,
                                      0));
    int wrong = 0;
    for (float sum : to_host(sums, blocks * COLS)) wrong += sum != ROWS * (ROWS - 1) / 2;
    return verdict("rows_handed_on", wrong);
}
