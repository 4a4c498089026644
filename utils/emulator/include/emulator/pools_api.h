// Stream-ordered allocation: memory comes and goes at once, for a stream is always idle. A pool
// knows how much is taken from it, and reserves nothing.
#pragma once

#include "emulator/api.h"

typedef struct EmuPool* cudaMemPool_t;

enum cudaMemPoolAttr {
    cudaMemPoolReuseFollowEventDependencies = 1,
    cudaMemPoolReuseAllowOpportunistic,
    cudaMemPoolReuseAllowInternalDependencies,
    cudaMemPoolAttrReleaseThreshold,
    cudaMemPoolAttrReservedMemCurrent,
    cudaMemPoolAttrReservedMemHigh,
    cudaMemPoolAttrUsedMemCurrent,
    cudaMemPoolAttrUsedMemHigh
};
enum cudaMemAllocationType { cudaMemAllocationTypeInvalid, cudaMemAllocationTypePinned };
enum cudaMemAllocationHandleType {
    cudaMemHandleTypeNone = 0,
    cudaMemHandleTypePosixFileDescriptor = 1
};
enum cudaMemAccessFlags {
    cudaMemAccessFlagsProtNone = 0,
    cudaMemAccessFlagsProtRead = 1,
    cudaMemAccessFlagsProtReadWrite = 3
};
struct cudaMemPoolProps {
    cudaMemAllocationType allocType;
    cudaMemAllocationHandleType handleTypes;
    cudaMemLocation location;
    void* win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
};
struct cudaMemAccessDesc {
    cudaMemLocation location;
    cudaMemAccessFlags flags;
};

extern "C" {
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device);
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool);
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream);
// Takes bytes from a pool, the device's where there is none, after a successful emu_malloc. They
// are there for what comes behind this in the stream.
cudaError_t emu_pool_take(cudaMemPool_t pool, void* pointer, size_t bytes, cudaStream_t stream);
}

inline cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
inline cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) {
    return cudaSuccess;
}
inline cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t,
                                        cudaMemLocation*) {
    *flags = cudaMemAccessFlagsProtReadWrite;
    return cudaSuccess;
}
template <class T>
cudaError_t cudaMallocFromPoolAsync(T** pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
    void** raw = reinterpret_cast<void**>(pointer);
    const cudaError_t error = emu_malloc(raw, bytes, nullptr, emu::element<T>());
    return error == cudaSuccess ? emu_pool_take(pool, *raw, bytes, stream) : error;
}
template <class T>
cudaError_t cudaMallocAsync(T** pointer, size_t bytes, cudaStream_t stream) {
    return cudaMallocFromPoolAsync(pointer, bytes, nullptr, stream);
}
template <class T>
cudaError_t cudaMallocAsync(T** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    return cudaMallocFromPoolAsync(pointer, bytes, pool, stream);
}

#ifdef EMU_INSTRUMENTED
// Not by EMU_NAMED: a stream may be a literal 0, which is no pointer once it has been passed on.
template <class T>
cudaError_t cudaMallocAsync(emu::Named, T** pointer, size_t bytes, cudaStream_t stream) {
    return cudaMallocAsync(pointer, bytes, stream);
}
template <class T>
cudaError_t cudaMallocAsync(emu::Named, T** pointer, size_t bytes, cudaMemPool_t pool,
                            cudaStream_t stream) {
    return cudaMallocAsync(pointer, bytes, pool, stream);
}
#    define cudaMallocAsync(...) cudaMallocAsync(emu::Named(#__VA_ARGS__), __VA_ARGS__)
#endif
