// cudaMalloc, cudaFree, cudaMemcpy, cudaMemset, the pitched forms; and what each refuses.
#include "expect.cuh"

__global__ void add_rows(float* data, size_t pitch, int rows, int columns) {
    const int row = blockIdx.x, column = threadIdx.x;
    if (row >= rows || column >= columns) return;
    float* line = reinterpret_cast<float*>(reinterpret_cast<char*>(data) + row * pitch);
    line[column] += 100.0f * row;
}

void allocation() {
    float *a = nullptr, *b = nullptr;
    void* untyped = nullptr;
    OK(cudaMalloc(&a, 1000));
    OK(cudaMalloc((void**)&b, 1));
    OK(cudaMalloc(&untyped, 3 << 20));
    EXPECT(a != nullptr && b != nullptr && a != b, true);
    EXPECT(reinterpret_cast<size_t>(a) % 256, 0u);
    EXPECT(reinterpret_cast<size_t>(b) % 256, 0u);
    OK(cudaFree(untyped));
    OK(cudaFree(b));
    OK(cudaFree(a));
    EXPECT_ERROR(cudaFree(a), cudaErrorInvalidValue);  // a second time
    int on_the_stack = 0;
    EXPECT_ERROR(cudaFree(&on_the_stack), cudaErrorInvalidValue);
    OK(cudaFree(nullptr));
    OK(cudaMalloc(&a, 0));
    EXPECT(a == nullptr, true);
    EXPECT_ERROR(cudaMalloc(&a, size_t(1) << 50), cudaErrorMemoryAllocation);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorMemoryAllocation);
    EXPECT_ERROR(cudaGetLastError(), cudaSuccess);
    size_t available = 0, total = 0;
    OK(cudaMemGetInfo(&available, &total));
    EXPECT(available > 0 && available <= total, true);
    // Many allocations, most of them freed, all distinct while they live.
    std::vector<int*> kept;
    for (int i = 0; i < 300; ++i) {
        int* p;
        OK(cudaMalloc(&p, 16 + 100 * i));
        if (i % 10) OK(cudaFree(p));
        else kept.push_back(p);
    }
    for (size_t i = 0; i < kept.size(); ++i)
        OK(cudaMemcpy(kept[i], &i, sizeof(int), cudaMemcpyHostToDevice));
    for (size_t i = 0; i < kept.size(); ++i) {
        int value = -1;
        OK(cudaMemcpy(&value, kept[i], sizeof(int), cudaMemcpyDeviceToHost));
        EXPECT(value, int(i));
        OK(cudaFree(kept[i]));
    }
}

void copies() {
    const int n = 1000;
    std::vector<int> x(n), y(n, -1);
    for (int i = 0; i < n; ++i) x[i] = i * i;
    int *a, *b;
    const size_t bytes = n * sizeof(int);
    OK(cudaMalloc(&a, bytes));
    OK(cudaMalloc(&b, bytes));
    OK(cudaMemcpy(a, x.data(), bytes, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(b, a, bytes, cudaMemcpyDeviceToDevice));
    OK(cudaMemcpy(y.data(), b, bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; ++i) EXPECT(y[i], i * i);
    y.assign(n, 0);
    OK(cudaMemcpy(y.data(), x.data(), bytes, cudaMemcpyHostToHost));
    EXPECT(y[999], 999 * 999);
    OK(cudaMemcpy(y.data(), a + 500, 10 * sizeof(int), cudaMemcpyDefault));
    EXPECT(y[9], 509 * 509);
    EXPECT(y[10], 100);
    OK(cudaMemcpy(b + 10, y.data(), 2 * sizeof(int), cudaMemcpyDefault));
    OK(cudaMemset(a, 0, bytes));
    OK(cudaMemset(a + 1, 0x1ff, sizeof(int)));  // the value is taken as one byte
    OK(cudaMemset(reinterpret_cast<char*>(a) + 9, 1, 1));
    OK(cudaMemcpy(y.data(), a, 4 * sizeof(int), cudaMemcpyDeviceToHost));
    EXPECT(y[0], 0);
    EXPECT(y[1], -1);
    EXPECT(y[2], 256);

    OK(cudaMemcpy(a, x.data(), 0, cudaMemcpyHostToDevice));
    EXPECT_ERROR(cudaMemcpy(a, x.data(), bytes + 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemcpy(y.data(), a + 1, bytes, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemcpy(nullptr, a, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemcpy(a, x.data(), bytes, cudaMemcpyKind(7)),
                 cudaErrorInvalidMemcpyDirection);
    EXPECT_ERROR(cudaMemset(a, 0, bytes + 1), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemset(nullptr, 0, 4), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaPeekAtLastError(), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaPeekAtLastError(), cudaSuccess);
    OK(cudaMemcpy(y.data(), b, bytes, cudaMemcpyDeviceToHost));  // none of it did harm
    EXPECT(y[100], 10000);
    OK(cudaFree(a));
    OK(cudaFree(b));
}

void pitched() {
    const int rows = 7, columns = 45;
    const size_t width = columns * sizeof(float);
    float *data, matrix[rows][columns], back[rows][columns + 3];
    size_t pitch = 0;
    OK(cudaMallocPitch(&data, &pitch, width, rows));
    EXPECT(pitch >= width && pitch % 32 == 0, true);
    for (int i = 0; i < rows * columns; ++i) matrix[i / columns][i % columns] = float(i);
    for (auto& row : back)
        for (float& value : row) value = -1;
    OK(cudaMemcpy2D(data, pitch, matrix, width, width, rows, cudaMemcpyHostToDevice));
    add_rows<<<rows, 64>>>(data, pitch, rows, columns);
    LAUNCHED();
    OK(cudaMemcpy2D(back, sizeof(back[0]), data, pitch, width, rows, cudaMemcpyDeviceToHost));
    for (int row = 0; row < rows; ++row)
        for (int column = 0; column < columns + 3; ++column)
            EXPECT(back[row][column],
                   column < columns ? float(row * columns + column) + 100 * row : -1.0f);
    OK(cudaMemset2D(data, pitch, 0, 2 * sizeof(float), rows));
    OK(cudaMemcpy2D(back, sizeof(back[0]), data, pitch, width, rows, cudaMemcpyDeviceToHost));
    EXPECT(back[6][0] + back[6][1], 0.0f);
    EXPECT(back[6][2], 6 * 45 + 2 + 600.0f);
    EXPECT_ERROR(cudaMemcpy2D(data, width - 4, matrix, width, width, rows, cudaMemcpyHostToDevice),
                 cudaErrorInvalidPitchValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidPitchValue);
    OK(cudaFree(data));
}

void host_memory() {
    int* pinned = nullptr;
    OK(cudaMallocHost(&pinned, 100 * sizeof(int)));
    pinned[99] = 5;
    OK(cudaFreeHost(pinned));
    OK(cudaFreeHost(nullptr));
    int on_the_stack = 0;
    EXPECT_ERROR(cudaFreeHost(&on_the_stack), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);

    Buffer<int> buffer(4);
    cudaPointerAttributes attributes;
    OK(cudaPointerGetAttributes(&attributes, buffer.device));
    EXPECT(attributes.type, cudaMemoryTypeDevice);
    EXPECT(attributes.devicePointer == buffer.device, true);
}

int main() {
    allocation();
    copies();
    pitched();
    host_memory();
    return finish();
}
