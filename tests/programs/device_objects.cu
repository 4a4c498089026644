// Objects with virtual functions, made and deleted by kernels, and memory from the device's heap.
#include "check.cuh"

struct Shape {
    __device__ virtual ~Shape() {}
    __device__ virtual float area() const = 0;
};
struct Square : Shape {
    float side;
    __device__ explicit Square(float side) : side(side) {}
    __device__ float area() const override { return side * side; }
};
struct Circle : Shape {
    float radius;
    __device__ explicit Circle(float radius) : radius(radius) {}
    __device__ float area() const override { return 3.0f * radius * radius; }
};

__global__ void make(Shape** shapes, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (i % 2) shapes[i] = new Square(i);
    else shapes[i] = new Circle(i);
}
__global__ void measure(Shape** shapes, float* areas, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int* scratch = static_cast<int*>(malloc(2 * sizeof(int)));
    scratch[0] = i;
    scratch[1] = scratch[0] + 1;
    areas[i] = shapes[i]->area() + scratch[1];
    free(scratch);
    delete shapes[i];
}

int main() {
    const int n = 50;
    CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 1 << 20));
    Shape** shapes;
    CHECK(cudaMalloc(&shapes, n * sizeof(Shape*)));
    float* areas = to_device(std::vector<float>(n));
    make<<<2, 32>>>(shapes, n);
    measure<<<2, 32>>>(shapes, areas, n);
    const std::vector<float> got = to_host(areas, n);
    int wrong = 0;
    for (int i = 0; i < n; ++i) wrong += got[i] != (i % 2 ? 1 : 3) * i * i + i + 1;
    return verdict("device_objects", wrong);
}
