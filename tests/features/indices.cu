// threadIdx, blockIdx, blockDim, gridDim in one to three dimensions, and dim3 itself.
#include "expect.cuh"

__device__ unsigned linear(uint3 i, dim3 size) { return i.x + size.x * (i.y + size.y * i.z); }

// Each thread of the grid writes once where nobody else writes.
__global__ void stamp(int* stamps, dim3 grid, dim3 block) {
    EXPECT(gridDim.x, grid.x);
    EXPECT(gridDim.y, grid.y);
    EXPECT(gridDim.z, grid.z);
    EXPECT(blockDim.x, block.x);
    EXPECT(blockDim.y, block.y);
    EXPECT(blockDim.z, block.z);
    EXPECT(warpSize, 32);
    EXPECT(threadIdx.x < block.x && threadIdx.y < block.y && threadIdx.z < block.z, true);
    unsigned threads = block.x * block.y * block.z;
    stamps[linear(blockIdx, grid) * threads + linear(threadIdx, block)] += 1;
}

__global__ void ragged_1d(int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 3 * i + 1;
}
__global__ void ragged_2d(int* out, int rows, int columns) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && column < columns) out[row * columns + column] = 1000 * row + column;
}
__global__ void grid_stride(int* out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] += i;
}

// threadIdx.x runs fastest: consecutive lanes of a warp differ in x first.
__global__ void lanes(unsigned* rank_of_lane) {
    unsigned rank = linear(threadIdx, blockDim);
    rank_of_lane[rank] = __shfl_sync(~0u, rank, 5);
}

void stamp_all(dim3 grid, dim3 block) {
    size_t n = size_t(grid.x) * grid.y * grid.z * block.x * block.y * block.z;
    Buffer<int> stamps(n);
    stamp<<<grid, block>>>(stamps.device, grid, block);
    stamps.download();
    for (size_t i = 0; i < n; ++i) EXPECT(stamps[i], 1);
}

int main() {
    EXPECT(dim3().x * dim3().y * dim3().z, 1);
    EXPECT(dim3(7).x, 7);
    EXPECT(dim3(7).z, 1);
    uint3 three = {1, 2, 3};
    EXPECT(dim3(three).y, 2);
    dim3 assigned;
    assigned.y = 9;
    EXPECT(assigned.y, 9);

    stamp_all(1, 1);
    stamp_all(3, 1);
    stamp_all(5, 33);
    stamp_all(1, 1024);
    stamp_all(dim3(2, 3), dim3(4, 5));
    stamp_all(dim3(2, 3, 4), dim3(3, 5, 7));
    stamp_all(dim3(1, 1, 3), dim3(1, 2, 64));
    stamp_all({4, 2}, {8, 8});

    const int n = 1000;
    Buffer<int> line(n, -1);
    ragged_1d<<<(n + 127) / 128, 128>>>(line.device, n);
    line.download();
    for (int i = 0; i < n; ++i) EXPECT(line[i], 3 * i + 1);

    const int rows = 37, columns = 53;
    Buffer<int> matrix(rows * columns, -1);
    dim3 block(16, 8), grid((columns + block.x - 1) / block.x, (rows + block.y - 1) / block.y);
    ragged_2d<<<grid, block>>>(matrix.device, rows, columns);
    matrix.download();
    for (int i = 0; i < rows * columns; ++i) EXPECT(matrix[i], 1000 * (i / columns) + i % columns);

    Buffer<int> strided(n);
    grid_stride<<<3, 64>>>(strided.device, n);
    strided.download();
    for (int i = 0; i < n; ++i) EXPECT(strided[i], i);

    Buffer<unsigned> ranks(128);
    lanes<<<1, dim3(4, 4, 8)>>>(ranks.device);
    ranks.download();
    for (unsigned i = 0; i < 128; ++i) EXPECT(ranks[i], i / 32 * 32 + 5);
    return finish();
}
