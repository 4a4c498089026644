// What every feature program uses: compare with the known answer, on the host or in a kernel, and
// print a line for each case that differs.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

static int host_cases, host_failures;
static __device__ int device_cases, device_failures;

// True if the case is good; counted either way.
__host__ __device__ inline bool counted(bool good) {
#ifdef __CUDA_ARCH__
    atomicAdd(&device_cases, 1);
    if (!good) atomicAdd(&device_failures, 1);
#else
    __atomic_fetch_add(&host_cases, 1, __ATOMIC_RELAXED);
    if (!good) __atomic_fetch_add(&host_failures, 1, __ATOMIC_RELAXED);
#endif
    return good;
}

template <class T, class U>
__host__ __device__ bool expect_equal(const char* file, int line, const char* what, T got, U want) {
    if (counted(got == static_cast<T>(want))) return true;
    if constexpr (std::is_floating_point_v<T>)
        printf("%s:%d: %s is %.9g, not %.9g\n", file, line, what, double(got), double(want));
    else printf("%s:%d: %s is %lld, not %lld\n", file, line, what, (long long)got, (long long)want);
    return false;
}
__host__ __device__ inline bool expect_near(const char* file, int line, const char* what,
                                            double got, double want, double tolerance) {
    if (counted(fabs(got - want) <= tolerance)) return true;  // a NaN is near to nothing
    printf("%s:%d: %s is %.9g, not %.9g\n", file, line, what, got, want);
    return false;
}
inline bool expect_error(const char* file, int line, const char* what, cudaError_t got,
                         cudaError_t want) {
    if (counted(got == want)) return true;
    printf("%s:%d: %s gives %s, not %s\n", file, line, what, cudaGetErrorName(got),
           cudaGetErrorName(want));
    return false;
}
#define EXPECT(got, want) expect_equal(__FILE__, __LINE__, #got, got, want)
// The absolute error is at most `tolerance`.
#define EXPECT_NEAR(got, want, tolerance) \
    expect_near(__FILE__, __LINE__, #got, got, want, tolerance)
#define EXPECT_ERROR(call, want) expect_error(__FILE__, __LINE__, #call, call, want)
#define OK(call)                                            \
    do {                                                    \
        if (!EXPECT_ERROR(call, cudaSuccess)) std::exit(1); \
    } while (0)
// After a launch: it was accepted, and it ran to its end.
#define LAUNCHED()                   \
    do {                             \
        OK(cudaGetLastError());      \
        OK(cudaDeviceSynchronize()); \
    } while (0)

// The same value, which the compiler cannot know: what is tested runs on the device.
template <class T>
__host__ __device__ T hidden(T value) {
    volatile T kept = value;
    return kept;
}

// Device memory beside a host copy. `upload` and `download` move all of it.
template <class T>
struct Buffer {
    explicit Buffer(size_t n, T value = T()) : host(n, value) {
        OK(cudaMalloc(&device, n * sizeof(T)));
        upload();
    }
    ~Buffer() { cudaFree(device); }
    Buffer(const Buffer&) = delete;
    void upload() { OK(cudaMemcpy(device, host.data(), bytes(), cudaMemcpyHostToDevice)); }
    void download() {
        LAUNCHED();
        OK(cudaMemcpy(host.data(), device, bytes(), cudaMemcpyDeviceToHost));
    }
    size_t bytes() const { return host.size() * sizeof(T); }
    T& operator[](size_t i) { return host[i]; }
    std::vector<T> host;
    T* device = nullptr;
};

// What main returns: 0 if there were cases and all were good.
inline int finish() {
    LAUNCHED();
    int cases = 0, failures = 0;
    OK(cudaMemcpyFromSymbol(&cases, device_cases, sizeof(int)));
    OK(cudaMemcpyFromSymbol(&failures, device_failures, sizeof(int)));
    printf("%d cases, %d wrong\n", cases + host_cases, failures + host_failures);
    return failures + host_failures > 0 || cases + host_cases == 0;
}
// The same after a fault: the device's counters are lost with it.
inline int finish_on_host() {
    printf("%d cases, %d wrong\n", host_cases, host_failures);
    return host_failures > 0 || host_cases == 0;
}
