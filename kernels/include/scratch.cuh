// Memory for the time of a call.
#pragma once

#include <atomic>

// Has the current device's pool keep memory for the next call, once for each device. Returns
// whether it does.
inline bool pool_keeps() {
    static std::atomic<unsigned long long> done{0};  // a bit for each device, of the first 64
    int device;
    if (cudaGetDevice(&device) != cudaSuccess) return false;
    unsigned long long bit = device < 64 ? 1ull << device : 0, most = ~0ull;
    if (done & bit) return true;
    cudaMemPool_t pool;
    if (cudaDeviceGetDefaultMemPool(&pool, device) != cudaSuccess) return false;
    auto threshold = cudaMemPoolAttrReleaseThreshold;
    if (cudaMemPoolSetAttribute(pool, threshold, &most) != cudaSuccess) return false;
    done |= bit;
    return true;
}

// `count` elements from CUDA's pool; none: nothing. Taken and given back in the order of the
// stream, so that the kernels between have it for themselves. The pool keeps it for the next call.
template <class T>
struct Scratch {
    T* data = nullptr;

    explicit Scratch(size_t count) {
        if (count && pool_keeps()) {
            cudaMallocAsync(reinterpret_cast<void**>(&data), count * sizeof(T), 0);
        }
    }
    ~Scratch() {
        if (data) cudaFreeAsync(data, 0);
    }
    Scratch(const Scratch&) = delete;
};
