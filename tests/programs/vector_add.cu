// c = a + b for n numbers, one thread for each. n may be given as an argument.
#include <vector>

#include "check.cuh"

__global__ void vector_add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

int main(int argc, char** argv) {
    const int n = argc > 1 ? std::atoi(argv[1]) : 100'003;
    std::vector<float> a(n), b(n), c(n);
    for (int i = 0; i < n; ++i) {
        a[i] = i;
        b[i] = 0.5f * i;
    }

    float *a_device, *b_device, *c_device;
    CHECK(cudaMalloc(&a_device, n * sizeof(float)));
    CHECK(cudaMalloc(&b_device, n * sizeof(float)));
    CHECK(cudaMalloc(&c_device, n * sizeof(float)));
    CHECK(cudaMemcpy(a_device, a.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b_device, b.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    const int threads = 256;
    vector_add<<<(n + threads - 1) / threads, threads>>>(a_device, b_device, c_device, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(c.data(), c_device, n * sizeof(float), cudaMemcpyDeviceToHost));

    int wrong = 0;
    for (int i = 0; i < n; ++i) wrong += c[i] != 1.5f * i;
    std::printf("vector_add: n = %d, %d wrong\n", n, wrong);

    CHECK(cudaFree(a_device));
    CHECK(cudaFree(b_device));
    CHECK(cudaFree(c_device));
    return wrong ? 1 : 0;
}
