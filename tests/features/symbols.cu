// __constant__ and __device__ variables, and the calls that reach them from the host.
#include "expect.cuh"

struct Filter {
    float weight[3];
    int radius;
};
__constant__ int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__constant__ Filter filter;
__constant__ float scale = 0.5f;
__device__ int total;
__device__ float history[4] = {1, 2, 3, 4};
__device__ unsigned long long wide = 1ull << 40;
static __device__ int grid_of[2][3];
__device__ const int primes[] = {2, 3, 5, 7};
__device__ float* where;

__global__ void read_constants(int* out) {
    out[threadIdx.x] = table[threadIdx.x];
    if (threadIdx.x < 3) EXPECT(filter.weight[threadIdx.x], 0.25f * (threadIdx.x + 1));
    EXPECT(filter.radius, 1);
    EXPECT(primes[threadIdx.x % 4], threadIdx.x % 4 == 0 ? 2 : int(threadIdx.x % 4) * 2 + 1);
}
__global__ void write_variables() {
    atomicAdd(&total, 1);
    if (blockIdx.x > 0) return;
    if (threadIdx.x < 4) history[threadIdx.x] *= scale;
    if (threadIdx.x < 6) grid_of[threadIdx.x / 3][threadIdx.x % 3] = threadIdx.x * 10;
    if (threadIdx.x == 0) wide += 7;
}
__global__ void through_pointer(float* pointer, int n) {
    if (threadIdx.x < n) pointer[threadIdx.x] += 100;
}
__global__ void through_global_pointer(int n) {
    if (threadIdx.x < n) where[threadIdx.x] = threadIdx.x;
}

int main() {
    const Filter host_filter = {{0.25f, 0.5f, 0.75f}, 1};
    OK(cudaMemcpyToSymbol(filter, &host_filter, sizeof(Filter)));
    Buffer<int> out(8);
    read_constants<<<1, 8>>>(out.device);
    out.download();
    const int digits[8] = {3, 1, 4, 1, 5, 9, 2, 6};
    for (int i = 0; i < 8; ++i) EXPECT(out[i], digits[i]);

    // A part of an array, by its offset in bytes.
    const int pair[2] = {70, 80};
    OK(cudaMemcpyToSymbol(table, pair, sizeof(pair), 2 * sizeof(int)));
    read_constants<<<1, 8>>>(out.device);
    out.download();
    EXPECT(out[1], 1);
    EXPECT(out[2], 70);
    EXPECT(out[3], 80);
    EXPECT(out[4], 5);

    write_variables<<<10, 64>>>();
    LAUNCHED();
    int seen = -1;
    OK(cudaMemcpyFromSymbol(&seen, total, sizeof(int)));
    EXPECT(seen, 640);
    unsigned long long seen_wide = 0;
    OK(cudaMemcpyFromSymbol(&seen_wide, wide, sizeof(seen_wide), 0, cudaMemcpyDeviceToHost));
    EXPECT(seen_wide, (1ull << 40) + 7);
    float halved[4] = {};
    OK(cudaMemcpyFromSymbol(halved, history, sizeof(halved)));
    for (int i = 0; i < 4; ++i) EXPECT(halved[i], 0.5f * (i + 1));
    int seen_grid[2][3] = {};
    OK(cudaMemcpyFromSymbol(seen_grid, grid_of, sizeof(seen_grid)));
    EXPECT(seen_grid[1][2], 50);
    int one = -1;
    OK(cudaMemcpyFromSymbol(&one, grid_of, sizeof(int), 4 * sizeof(int)));
    EXPECT(one, 40);
    EXPECT_ERROR(cudaMemcpyFromSymbol(&one, total, 2 * sizeof(int)), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemcpyToSymbol(total, pair, sizeof(int), 4), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);

    // The address of a symbol is a device pointer like any other.
    const float start[4] = {5, 6, 7, 8};
    OK(cudaMemcpyToSymbol(history, start, sizeof(start)));
    float *pointer = nullptr, back[4] = {};
    size_t size = 0;
    OK(cudaGetSymbolAddress((void**)&pointer, history));
    OK(cudaGetSymbolSize(&size, history));
    EXPECT(size, sizeof(start));
    through_pointer<<<1, 32>>>(pointer, 4);
    LAUNCHED();
    OK(cudaMemcpy(back, pointer, sizeof(back), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 4; ++i) EXPECT(back[i], 105 + i);
    OK(cudaMemcpy(pointer + 1, start, 2 * sizeof(float), cudaMemcpyHostToDevice));
    OK(cudaMemset(pointer + 3, 0, sizeof(float)));
    OK(cudaMemcpyFromSymbol(back, history, sizeof(back)));
    EXPECT(back[0] == 105 && back[1] == 5 && back[2] == 6 && back[3] == 0, true);
    Buffer<float> copy(4);
    OK(cudaMemcpyToSymbol(history, copy.device, sizeof(back), 0, cudaMemcpyDeviceToDevice));
    OK(cudaMemcpyFromSymbol(back, history, sizeof(back)));
    EXPECT(back[0] + back[1] + back[2] + back[3], 0.0f);

    // A device pointer in a device variable.
    OK(cudaMemcpyToSymbol(where, &copy.device, sizeof(float*)));
    through_global_pointer<<<1, 32>>>(4);
    copy.download();
    for (int i = 0; i < 4; ++i) EXPECT(copy[i], i);
    return finish();
}
