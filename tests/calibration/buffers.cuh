// Device memory for the calibration programs.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <vector>

inline void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    std::printf("%s\n", cudaGetErrorString(error));
    std::exit(1);
}

// n elements, all written: element i is value(i).
template <class T, class Value>
T* filled(int n, Value value) {
    std::vector<T> host(n);
    for (int i = 0; i < n; i++) host[i] = static_cast<T>(value(i));
    T* device;
    check(cudaMalloc(&device, n * sizeof(T)));
    check(cudaMemcpy(device, host.data(), n * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

template <class T = float>
T* filled(int n) {
    return filled<T>(n, [](int i) { return i % 61; });
}
