// What every example program uses: stop with CUDA's own words where a call fails, arrays to and
// from the device, a last line that says how much was wrong.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                              \
    do {                                                                                         \
        cudaError_t error_ = (call);                                                             \
        if (error_ != cudaSuccess) {                                                             \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error_)); \
            std::exit(1);                                                                        \
        }                                                                                        \
    } while (0)

template <class T>
T* to_device(const std::vector<T>& host) {
    T* device;
    CHECK(cudaMalloc(&device, host.size() * sizeof(T)));
    CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}
template <class T>
std::vector<T> to_host(const T* device, size_t n) {
    std::vector<T> host(n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host.data(), device, n * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
}
inline std::vector<float> some_floats(int n, unsigned seed = 1) {  // between -1 and 1
    std::vector<float> x(n);
    for (float& v : x) {
        seed = seed * 1664525u + 1013904223u;
        v = float(int(seed >> 8) % 2001 - 1000) / 1000.0f;
    }
    return x;
}
inline bool differ(float a, float b, float tolerance = 1e-4f) {
    return !(std::fabs(a - b) <= tolerance * (1.0f + std::fabs(b)));
}
inline int verdict(const char* name, int wrong) {
    std::printf("%s, %d wrong\n", name, wrong);
    return wrong ? 1 : 0;
}
