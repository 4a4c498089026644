// The part of the CUDA runtime API that a plain .cu with main() uses. Here: memory, which on the
// device is host memory too.
#pragma once

#include <cstring>

#include "emulator/device_api.h"
#include "emulator/function_api.h"
#include "emulator/launch.h"
#include "emulator/stream_api.h"

enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
enum { cudaMemAttachGlobal = 1, cudaMemAttachHost = 2, cudaMemAttachSingle = 4 };
enum {
    cudaHostAllocDefault = 0,
    cudaHostAllocPortable = 1,
    cudaHostAllocMapped = 2,
    cudaHostAllocWriteCombined = 4
};
enum {
    cudaHostRegisterDefault = 0,
    cudaHostRegisterPortable = 1,
    cudaHostRegisterMapped = 2,
    cudaHostRegisterIoMemory = 4,
    cudaHostRegisterReadOnly = 8
};
enum { cudaPeerAccessDefault = 0 };
enum cudaMemoryType {
    cudaMemoryTypeUnregistered,
    cudaMemoryTypeHost,
    cudaMemoryTypeDevice,
    cudaMemoryTypeManaged
};
struct cudaPointerAttributes {
    cudaMemoryType type;
    int device;
    void *devicePointer, *hostPointer;
};
enum cudaMemoryAdvise {
    cudaMemAdviseSetReadMostly = 1,
    cudaMemAdviseUnsetReadMostly,
    cudaMemAdviseSetPreferredLocation,
    cudaMemAdviseUnsetPreferredLocation,
    cudaMemAdviseSetAccessedBy,
    cudaMemAdviseUnsetAccessedBy
};
enum cudaMemRangeAttribute {
    cudaMemRangeAttributeReadMostly = 1,
    cudaMemRangeAttributePreferredLocation,
    cudaMemRangeAttributeAccessedBy,
    cudaMemRangeAttributeLastPrefetchLocation
};
enum cudaMemLocationType {
    cudaMemLocationTypeInvalid,
    cudaMemLocationTypeNone = 0,
    cudaMemLocationTypeDevice,
    cudaMemLocationTypeHost,
    cudaMemLocationTypeHostNuma,
    cudaMemLocationTypeHostNumaCurrent
};
struct cudaMemLocation {
    cudaMemLocationType type;
    int id;
};
enum { cudaCpuDeviceId = -1, cudaInvalidDeviceId = -2 };

extern "C" {
cudaError_t emu_malloc(void** pointer, size_t bytes, const char* name, size_t element,
                       size_t shift = 0);  // bytes behind a multiple of 256
cudaError_t emu_malloc_managed(void** pointer, size_t bytes, const char* name, size_t element);
cudaError_t cudaFree(void* pointer);
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemset(void* to, int value, size_t bytes);
// The same in a stream, asynchronously.
cudaError_t emu_memcpy_in(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                          cudaStream_t stream);
cudaError_t emu_memcpy_2d_in(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                             size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t emu_memset_in(void* to, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t emu_malloc_host(void** pointer, size_t bytes);
cudaError_t cudaFreeHost(void* pointer);
cudaError_t emu_pin(void* pointer, size_t bytes);
cudaError_t emu_unpin(void* pointer);
cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer);
void emu_lend_memory(const void* first, size_t bytes);
}

template <class T>
cudaError_t cudaMalloc(T** pointer, size_t bytes, const char* name = nullptr) {
    return emu_malloc(reinterpret_cast<void**>(pointer), bytes, name, emu::element<T>());
}
template <class T>
cudaError_t cudaMallocManaged(T** pointer, size_t bytes, unsigned = cudaMemAttachGlobal,
                              const char* name = nullptr) {
    return emu_malloc_managed(reinterpret_cast<void**>(pointer), bytes, name, emu::element<T>());
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
template <class T>
cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned) {
    *device = static_cast<T*>(host);
    return cudaSuccess;
}
inline cudaError_t cudaHostGetFlags(unsigned* flags, void*) {
    *flags = cudaHostAllocMapped;
    return cudaSuccess;
}
inline cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned) {
    return emu_pin(pointer, bytes);
}
inline cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
    return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
}
inline cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                                       cudaStream_t stream = nullptr) {
    return emu_memcpy_in(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}
inline cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void*, size_t = 0,
                                            unsigned = cudaMemAttachSingle) {
    return cudaSuccess;
}
template <class T>
cudaError_t cudaStreamAttachMemAsync(cudaStream_t, T*, size_t = 0, unsigned = cudaMemAttachSingle) {
    return cudaSuccess;
}
inline cudaError_t cudaMemRangeGetAttribute(void* data, size_t size, cudaMemRangeAttribute,
                                            const void*, size_t) {
    memset(data, 0, size);
    return cudaSuccess;
}
inline cudaError_t cudaHostUnregister(void* pointer) { return emu_unpin(pointer); }
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t stream = nullptr) {
    return emu_memcpy_in(to, from, bytes, kind, stream);
}
inline cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes,
                                   cudaStream_t stream = nullptr) {
    return emu_memset_in(to, value, bytes, stream);
}
inline cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                     size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t stream = nullptr) {
    return emu_memcpy_2d_in(to, to_pitch, from, from_pitch, width, height, kind, stream);
}
inline cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                                     cudaStream_t stream = nullptr) {
    if (width > pitch) return emu_fail(cudaErrorInvalidValue);
    for (size_t row = 0; row < height; ++row) {
        void* target = static_cast<char*>(to) + row * pitch;
        if (cudaError_t error = emu_memset_in(target, value, width, stream)) return error;
    }
    return cudaSuccess;
}
// In the form of CUDA 12 and in that of CUDA 13.
inline cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t = nullptr) {
    return cudaSuccess;
}
inline cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned,
                                        cudaStream_t = nullptr) {
    return cudaSuccess;
}
inline cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, int) { return cudaSuccess; }
inline cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) {
    return cudaSuccess;
}

// A symbol is the variable itself: __device__ and __constant__ memory is ordinary memory here.
template <class T>
cudaError_t cudaGetSymbolAddress(void** pointer, const T& symbol) {
    emu_lend_memory(&symbol, sizeof(T));  // cudaMemcpy takes it for device memory from now on
    *pointer = (void*)&symbol;
    return cudaSuccess;
}
template <class T>
cudaError_t cudaGetSymbolSize(size_t* size, const T&) {
    *size = sizeof(T);
    return cudaSuccess;
}
template <class T>
cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, size_t bytes, size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
    if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost)
        return emu_fail(cudaErrorInvalidMemcpyDirection);
    void* first;
    cudaGetSymbolAddress(&first, symbol);
    return cudaMemcpy(static_cast<char*>(first) + offset, from, bytes, kind);
}
template <class T>
cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t bytes, size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
    if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice)
        return emu_fail(cudaErrorInvalidMemcpyDirection);
    void* first;
    cudaGetSymbolAddress(&first, symbol);
    return cudaMemcpy(to, static_cast<const char*>(first) + offset, bytes, kind);
}
template <class T>
cudaError_t cudaMemcpyToSymbolAsync(T& symbol, const void* from, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream = nullptr) {
    if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost)
        return emu_fail(cudaErrorInvalidMemcpyDirection);
    void* first;
    cudaGetSymbolAddress(&first, symbol);
    return emu_memcpy_in(static_cast<char*>(first) + offset, from, bytes, kind, stream);
}
template <class T>
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream = nullptr) {
    if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice)
        return emu_fail(cudaErrorInvalidMemcpyDirection);
    void* first;
    cudaGetSymbolAddress(&first, symbol);
    return emu_memcpy_in(to, static_cast<const char*>(first) + offset, bytes, kind, stream);
}

// A diagnosis speaks of d_out[3] where the memory was allocated by cudaMalloc(&d_out, bytes).
#ifdef EMU_INSTRUMENTED
namespace emu {
struct Named {
    explicit Named(const char* arguments) { emu_name_next(arguments); }
};
}  // namespace emu
#    define EMU_NAMED(function)                            \
        template <class... Arguments>                      \
        cudaError_t function(emu::Named, Arguments... a) { \
            return function(a...);                         \
        }
EMU_NAMED(cudaMalloc)
EMU_NAMED(cudaMallocManaged)
EMU_NAMED(cudaMallocPitch)
#    define cudaMalloc(...) cudaMalloc(emu::Named(#__VA_ARGS__), __VA_ARGS__)
#    define cudaMallocManaged(...) cudaMallocManaged(emu::Named(#__VA_ARGS__), __VA_ARGS__)
#    define cudaMallocPitch(...) cudaMallocPitch(emu::Named(#__VA_ARGS__), __VA_ARGS__)
#endif
