// What a program may ask about a kernel, and launches by pointer.
#pragma once

#include "emulator/device_api.h"
#include "emulator/stream_api.h"

enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9,
    cudaFuncAttributeNonPortableClusterSizeAllowed = 14
};
enum cudaSharedCarveout {
    cudaSharedmemCarveoutDefault = -1,
    cudaSharedmemCarveoutMaxL1 = 0,
    cudaSharedmemCarveoutMaxShared = 100
};
enum { cudaOccupancyDefault = 0, cudaOccupancyDisableCachingOverride = 1 };
enum { cudaCooperativeLaunchMultiDeviceNoPreSync = 1, cudaCooperativeLaunchMultiDeviceNoPostSync };

// Registers and static shared memory are the CPU compiler's secret: none is said to be used.
struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;
    int maxDynamicSharedSizeBytes, preferredShmemCarveout;
};

extern "C" {
cudaError_t emu_function_attributes(cudaFuncAttributes* attributes, const void* kernel);
cudaError_t emu_max_dynamic_shared(int bytes);
// Blocks of so many threads and bytes of shared memory that a multiprocessor has room for.
cudaError_t emu_resident_blocks(int* blocks, int threads, size_t shared);
// The multiprocessors' number, for `resident` blocks on each.
cudaError_t emu_potential_grid(int* grid, int threads, size_t shared);
}

struct cudaLaunchParams {
    void* func;
    dim3 gridDim, blockDim;
    void** args;
    size_t sharedMem;
    cudaStream_t stream;
};
enum cudaLaunchAttributeID {
    cudaLaunchAttributeIgnore,
    cudaLaunchAttributeAccessPolicyWindow,
    cudaLaunchAttributeCooperative,
    cudaLaunchAttributeSynchronizationPolicy,
    cudaLaunchAttributeClusterDimension,
    cudaLaunchAttributeClusterSchedulingPolicyPreference,
    cudaLaunchAttributeProgrammaticStreamSerialization,
    cudaLaunchAttributeProgrammaticEvent,
    cudaLaunchAttributePriority
};
union cudaLaunchAttributeValue {
    char pad[64];
    cudaAccessPolicyWindow accessPolicyWindow;
    int cooperative, programmaticStreamSerializationAllowed, priority;
    struct {
        unsigned x, y, z;
    } clusterDim;
};
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute* attrs;
    unsigned numAttrs;
};

namespace emu {
// A kernel by pointer. Its parameters are known from its type, so the rewriter takes away the casts
// to void* that CUDA's own form wants.
template <class... P>
struct Kernel {
    const char* name;
    void (*function)(P...);
};
template <class... P>
Kernel<P...> named(const char* name, void (*function)(P...)) {
    return {name, function};
}
// Of a pointer that is untyped already nobody knows what it points to.
inline const void* named(const char*, const void* function) { return function; }

template <class... P, size_t... I>
cudaError_t launch_addresses(bool cooperative, Config config, Kernel<P...> kernel, void** addresses,
                             std::index_sequence<I...>) {
    if (cooperative) emu_cooperate();
    launch(config, kernel.name, kernel.function,
           *static_cast<std::remove_cv_t<std::remove_reference_t<P>>*>(addresses[I])...);
    return cudaPeekAtLastError();
}
}  // namespace emu

#define EMU_LAUNCH_BY_POINTER(name, cooperative)                                                   \
    template <class... P>                                                                          \
    cudaError_t name(emu::Kernel<P...> kernel, dim3 grid, dim3 block, void** arguments,            \
                     size_t shared = 0, cudaStream_t stream = nullptr,                             \
                     emu::Here here = emu::Here()) {                                               \
        return emu::launch_addresses(cooperative, emu::Config(grid, block, shared, stream, here),  \
                                     kernel, arguments, std::index_sequence_for<P...>());          \
    }                                                                                              \
    template <class... P>                                                                          \
    cudaError_t name(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments,                \
                     size_t shared = 0, cudaStream_t stream = nullptr,                             \
                     emu::Here here = emu::Here()) {                                               \
        return name(emu::named("kernel", kernel), grid, block, arguments, shared, stream, here);   \
    }                                                                                              \
    inline cudaError_t name(const void*, dim3, dim3, void**, size_t = 0, cudaStream_t = nullptr) { \
        fprintf(stderr, "the emulator launches no kernel that it knows as void* alone: " #name     \
                        " needs the kernel's own name\n");                                         \
        return emu_fail(cudaErrorInvalidDeviceFunction);                                           \
    }
EMU_LAUNCH_BY_POINTER(cudaLaunchKernel, false)
EMU_LAUNCH_BY_POINTER(cudaLaunchCooperativeKernel, true)
#undef EMU_LAUNCH_BY_POINTER

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...),
                               A&&... arguments) {
    for (unsigned i = 0; i < config->numAttrs; ++i) {
        const cudaLaunchAttribute& a = config->attrs[i];
        if (a.id == cudaLaunchAttributeCooperative && a.val.cooperative) emu_cooperate();
        if (a.id == cudaLaunchAttributeClusterDimension &&
            a.val.clusterDim.x * a.val.clusterDim.y * a.val.clusterDim.z > 1)
            emu_cluster(dim3(a.val.clusterDim.x, a.val.clusterDim.y, a.val.clusterDim.z));
    }
    emu::launch(
        emu::Config(config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream),
        "kernel", kernel, P(std::forward<A>(arguments))...);
    return cudaPeekAtLastError();
}

template <class F>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, F) {
    return emu_function_attributes(attributes, nullptr);
}
template <class F>
cudaError_t cudaFuncSetCacheConfig(F, cudaFuncCache) {
    return cudaSuccess;
}
template <class F>
cudaError_t cudaFuncSetSharedMemConfig(F, cudaSharedMemConfig) {
    return cudaSuccess;
}
// The limit is kept for the whole program, not for each kernel.
template <class F>
cudaError_t cudaFuncSetAttribute(F, cudaFuncAttribute attribute, int value) {
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize)
        return emu_max_dynamic_shared(value);
    return cudaSuccess;
}
template <class F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F, int threads,
                                                          size_t shared) {
    return emu_resident_blocks(blocks, threads, shared);
}
template <class F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, F, int threads,
                                                                   size_t shared, unsigned) {
    return emu_resident_blocks(blocks, threads, shared);
}
template <class F>
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, F, int blocks, int) {
    *bytes = size_t(227 * 1024) / size_t(blocks > 0 ? blocks : 1);
    return cudaSuccess;
}
// The largest block that as many threads as possible have room in.
template <class Bytes, class F>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* grid, int* block, F,
                                                           Bytes bytes_of_block, int limit = 0) {
    int best = 0;
    *block = 32;
    for (int threads = limit > 0 && limit < 1024 ? limit / 32 * 32 : 1024; threads; threads -= 32) {
        int blocks = 0;
        emu_resident_blocks(&blocks, threads, size_t(bytes_of_block(threads)));
        if (blocks * threads > best) best = blocks * threads, *block = threads;
    }
    return emu_potential_grid(grid, *block, size_t(bytes_of_block(*block)));
}
template <class F>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, F kernel, size_t shared = 0,
                                               int limit = 0) {
    return cudaOccupancyMaxPotentialBlockSizeVariableSMem(
        grid, block, kernel, [shared](int) { return shared; }, limit);
}
template <class F>
cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, F kernel,
                                                        size_t shared = 0, int limit = 0,
                                                        unsigned = 0) {
    return cudaOccupancyMaxPotentialBlockSize(grid, block, kernel, shared, limit);
}
