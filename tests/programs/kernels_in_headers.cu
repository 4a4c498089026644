// Kernels, launches and shared memory that come in through headers, in folders, with a cycle.
#include "parts/scale.cuh"
#include "parts/shape.h"

template <typename T>
int run(T factor) {
    const parts::Shape shape{7, 31};
    T* x;
    CHECK(cudaMallocManaged(&x, shape.count() * sizeof(T)));
    for (int i = 0; i < shape.count(); ++i) x[i] = T(i);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    parts::launch_scale(x, factor, shape);
    CHECK(cudaDeviceSynchronize());
    parts::launch_scale<T>(x, factor, shape, stream);
    CHECK(cudaStreamSynchronize(stream));
    int wrong = 0;
    for (int i = 0; i < shape.count(); ++i) wrong += x[i] != factor * factor * T(i);
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(x));
    return wrong;
}

int main() {
    const int wrong = run<float>(3.0f) + run<double>(0.5) + run<int>(-2);
    std::printf("kernels_in_headers: %d wrong\n", wrong);
    return wrong ? 1 : 0;
}
