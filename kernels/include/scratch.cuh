// Memory for the time of a call.
#pragma once

// `count` elements from CUDA's pool; none: nothing. Taken and given back in the order of the
// stream, so that the kernels between have it for themselves. The pool keeps it for the next call.
template <class T>
struct Scratch {
    T* data = nullptr;

    explicit Scratch(size_t count) {
        static bool keeps = keep();
        if (keeps && count) cudaMallocAsync(reinterpret_cast<void**>(&data), count * sizeof(T), 0);
    }
    ~Scratch() {
        if (data) cudaFreeAsync(data, 0);
    }
    Scratch(const Scratch&) = delete;

   private:
    static bool keep() {
        cudaMemPool_t pool;
        unsigned long long most = ~0ull;
        int device;
        return cudaGetDevice(&device) == cudaSuccess &&
               cudaDeviceGetDefaultMemPool(&pool, device) == cudaSuccess &&
               cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &most) == cudaSuccess;
    }
};
