// The part of the CUDA runtime API that a plain .cu with main() uses. Device memory is host memory,
// a launch has ended when it returns, and so every stream is already idle.
#pragma once

#include <cstdio>
#include <cstring>

#include "emulator/launch.h"

#define EMU_ERRORS(X)                                                                            \
    X(cudaSuccess, 0, "no error")                                                                \
    X(cudaErrorInvalidValue, 1, "invalid argument")                                              \
    X(cudaErrorMemoryAllocation, 2, "out of memory")                                             \
    X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                        \
    X(cudaErrorInvalidSymbol, 13, "invalid device symbol")                                       \
    X(cudaErrorInvalidDevicePointer, 17, "invalid device pointer")                               \
    X(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                  \
    X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                     \
    X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                            \
    X(cudaErrorNotReady, 600, "device not ready")                                                \
    X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")                  \
    X(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch")             \
    X(cudaErrorLaunchTimeout, 702, "the launch timed out and was terminated")                    \
    X(cudaErrorAssert, 710, "device-side assert triggered")                                      \
    X(cudaErrorHardwareStackError, 714, "hardware stack error")                                  \
    X(cudaErrorIllegalInstruction, 715, "an illegal instruction was encountered")                \
    X(cudaErrorMisalignedAddress, 716, "misaligned address")                                     \
    X(cudaErrorLaunchFailure, 719, "unspecified launch failure")                                 \
    X(cudaErrorNotSupported, 801, "operation not supported")                                     \
    X(cudaErrorUnknown, 999, "unknown error")

enum cudaError {
#define X(name, number, text) name = number,
    EMU_ERRORS(X)
#undef X
};
typedef cudaError cudaError_t;

enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
enum { cudaMemAttachGlobal = 1, cudaMemAttachHost = 2 };
enum {
    cudaHostAllocDefault = 0,
    cudaHostAllocPortable = 1,
    cudaHostAllocMapped = 2,
    cudaHostAllocWriteCombined = 4
};
enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2 };
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
enum cudaFuncCache {
    cudaFuncCachePreferNone,
    cudaFuncCachePreferShared,
    cudaFuncCachePreferL1,
    cudaFuncCachePreferEqual
};
enum cudaLimit {
    cudaLimitStackSize,
    cudaLimitPrintfFifoSize,
    cudaLimitMallocHeapSize
};
enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrClockRate = 13,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrL2CacheSize = 38,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
};

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
    size_t totalConstMem;
    int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
    int major, minor, multiProcessorCount, l2CacheSize, maxThreadsPerMultiProcessor;
    int maxBlocksPerMultiProcessor, memoryBusWidth, concurrentKernels, managedMemory;
    int unifiedAddressing, integrated, canMapHostMemory, ECCEnabled, asyncEngineCount;
};
struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, maxDynamicSharedSizeBytes;
};

typedef struct EmuEvent* cudaEvent_t;

extern "C" {
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

cudaError_t emu_malloc(void** pointer, size_t bytes, const char* name, size_t element);
cudaError_t cudaFree(void* pointer);
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemset(void* to, int value, size_t bytes);
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t emu_malloc_host(void** pointer, size_t bytes);
cudaError_t cudaFreeHost(void* pointer);
cudaError_t emu_max_dynamic_shared(int bytes);

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceReset();

cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop);

void emu_set_time_limit(double seconds);
}

namespace emu {
template <class T>
constexpr size_t element() {  // bytes; 1 for void
    if constexpr (std::is_void_v<T>) return 1;
    else return sizeof(T);
}
}  // namespace emu

template <class T>
cudaError_t cudaMalloc(T** pointer, size_t bytes, const char* name = nullptr) {
    return emu_malloc(reinterpret_cast<void**>(pointer), bytes, name, emu::element<T>());
}
template <class T>
cudaError_t cudaMallocManaged(T** pointer, size_t bytes, unsigned = cudaMemAttachGlobal,
                              const char* name = nullptr) {
    return emu_malloc(reinterpret_cast<void**>(pointer), bytes, name, emu::element<T>());
}
template <class T>
cudaError_t cudaMallocAsync(T** pointer, size_t bytes, cudaStream_t, const char* name = nullptr) {
    return emu_malloc(reinterpret_cast<void**>(pointer), bytes, name, emu::element<T>());
}
template <class T>
cudaError_t cudaMallocPitch(T** pointer, size_t* pitch, size_t width, size_t height,
                            const char* name = nullptr) {
    *pitch = (width + 511) / 512 * 512;
    return emu_malloc(reinterpret_cast<void**>(pointer), *pitch * height, name, emu::element<T>());
}
template <class T>
cudaError_t cudaMallocHost(T** pointer, size_t bytes, unsigned = 0) {
    return emu_malloc_host(reinterpret_cast<void**>(pointer), bytes);
}
template <class T>
cudaError_t cudaHostAlloc(T** pointer, size_t bytes, unsigned = 0) {
    return emu_malloc_host(reinterpret_cast<void**>(pointer), bytes);
}
inline cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
    *device = host;
    return cudaSuccess;
}
inline cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) { return cudaFree(pointer); }
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t = nullptr) {
    return cudaMemcpy(to, from, bytes, kind);
}
inline cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t = nullptr) {
    return cudaMemset(to, value, bytes);
}
inline cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t = nullptr) {
    return cudaSuccess;
}

// A symbol is the variable itself: __device__ and __constant__ memory is ordinary memory here.
template <class T>
cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, size_t bytes, size_t offset = 0,
                               cudaMemcpyKind = cudaMemcpyHostToDevice) {
    if (offset + bytes > sizeof(T)) return cudaErrorInvalidValue;
    std::memcpy((char*)&symbol + offset, from, bytes);
    return cudaSuccess;
}
template <class T>
cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t bytes, size_t offset = 0,
                                 cudaMemcpyKind = cudaMemcpyDeviceToHost) {
    if (offset + bytes > sizeof(T)) return cudaErrorInvalidValue;
    std::memcpy(to, (const char*)&symbol + offset, bytes);
    return cudaSuccess;
}
template <class T>
cudaError_t cudaGetSymbolAddress(void** pointer, const T& symbol) {
    *pointer = (void*)&symbol;
    return cudaSuccess;
}
template <class T>
cudaError_t cudaGetSymbolSize(size_t* size, const T&) {
    *size = sizeof(T);
    return cudaSuccess;
}

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
    return cudaStreamCreate(stream);
}
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
    return cudaStreamCreate(stream);
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaDeviceSynchronize(); }
inline cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) { return cudaSuccess; }
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
    return cudaEventCreate(event);
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaDeviceSynchronize(); }
inline cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }

inline cudaError_t cudaRuntimeGetVersion(int* version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}
inline cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }
inline cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }
inline cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
inline cudaError_t cudaProfilerStart() { return cudaSuccess; }
inline cudaError_t cudaProfilerStop() { return cudaSuccess; }

template <class F>
cudaError_t cudaFuncSetCacheConfig(F, cudaFuncCache) {
    return cudaSuccess;
}
// The limit is kept for the whole program, not for each kernel.
template <class F>
cudaError_t cudaFuncSetAttribute(F, cudaFuncAttribute attribute, int value) {
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) return emu_max_dynamic_shared(value);
    return cudaSuccess;
}
template <class F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F, int threads, size_t) {
    *blocks = threads > 0 && threads <= 1024 ? 2048 / ((threads + 31) / 32 * 32) : 0;
    return cudaSuccess;
}
template <class F>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, F, size_t = 0, int = 0) {
    cudaDeviceProp properties;
    cudaGetDeviceProperties(&properties, 0);
    *block = 1024;
    *grid = 2 * properties.multiProcessorCount;
    return cudaSuccess;
}
template <class... P>
cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments,
                             size_t shared = 0, cudaStream_t stream = nullptr) {
    emu::launch_addresses(emu::Config(grid, block, shared, stream), kernel, arguments,
                          std::index_sequence_for<P...>());
    return cudaPeekAtLastError();
}
