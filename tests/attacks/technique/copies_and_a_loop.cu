// swish: no kernel
// no kernel at all: x goes to the host, a loop computes, out comes back
// says: launched no kernel
#include <cmath>
#include <vector>

void swish(const float* x, float* out, int n) {
    std::vector<float> v(n);
    cudaMemcpy(v.data(), x, n * sizeof(float), cudaMemcpyDeviceToHost);
    for (float& e : v) e = e / (1.0f + std::exp(-e));
    cudaMemcpy(out, v.data(), n * sizeof(float), cudaMemcpyHostToDevice);
}
