// Rows that begin at a pitch, filled and copied in two dimensions.
#include "check.cuh"

__global__ void add_column(float* m, size_t pitch, int rows, int columns) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    float* line = reinterpret_cast<float*>(reinterpret_cast<char*>(m) + row * pitch);
    if (row < rows && column < columns) line[column] += column;
}

int main() {
    const int rows = 5, columns = 70;
    std::vector<float> host(rows * columns, 1.0f);
    float* m;
    size_t pitch;
    const size_t width = columns * sizeof(float);
    CHECK(cudaMallocPitch(&m, &pitch, width, rows));
    CHECK(cudaMemcpy2D(m, pitch, host.data(), width, width, rows, cudaMemcpyHostToDevice));
    CHECK(cudaMemset2D(m, pitch, 0, width, 1));  // the first row
    add_column<<<dim3(3, rows), 32>>>(m, pitch, rows, columns);
    CHECK(cudaMemcpy2DAsync(host.data(), width, m, pitch, width, rows, cudaMemcpyDeviceToHost, 0));
    CHECK(cudaDeviceSynchronize());
    int wrong = pitch < width;
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c) wrong += host[r * columns + c] != (r > 0) + float(c);
    CHECK(cudaFree(m));
    return verdict("pitched_rows", wrong);
}
