// CUDA's functions about the device: errors and properties. Streams and events are in streams.cpp,
// memory is in memory.cpp.
#include "device.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "../include/emulator/api.h"
#include "block.h"
#include "hazard_kinds.h"
#include "heap.h"
#include "pinned_copies.h"
#include "pool.h"
#include "streams.h"

namespace emu {
namespace {

thread_local cudaError_t last_error = cudaSuccess;  // of a host thread
std::atomic<cudaError_t> fault{cudaSuccess};        // after which nothing runs any more
size_t max_dynamic = kStaticShared;
constexpr int kMultiprocessors = 16;
int asked_for = 0;  // multiprocessors; 0: kMultiprocessors

constexpr int kKilohertz = 1000000;  // clock() and clock64() of a kernel count nanoseconds

}  // namespace

cudaError_t result(cudaError_t error) {
    if (cudaError_t sticky = fault) return sticky;
    if (error != cudaSuccess) last_error = error;
    return error;
}

int multiprocessors() { return asked_for ? asked_for : kMultiprocessors; }

size_t total_memory() { return size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE)); }

void for_the_host(const char* function, const void* pc) {
    Core* c = core();
    if (c && c->current)
        c->fail(cudaErrorLaunchFailure, hazard::host_call, {}, pc,
                "calls %s, which is for host code alone", function);
}

void set_error(cudaError_t error) {
    if (fault != cudaSuccess) return;
    last_error = error;
    switch (error) {
        case cudaErrorInvalidValue:
        case cudaErrorInvalidConfiguration:
        case cudaErrorCooperativeLaunchTooLarge:
        case cudaErrorNotSupported: break;
        default: fault = error;
    }
}
bool device_lost() { return fault != cudaSuccess; }
cudaError_t device_fault() { return fault; }
size_t dynamic_shared_limit() { return max_dynamic; }

}  // namespace emu

using namespace emu;

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
    switch (error) {
#define X(name, number, text) \
    case name: return #name;
        EMU_ERRORS(X)
#undef X
    }
    return "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t error) {
    switch (error) {
#define X(name, number, text) \
    case name: return text;
        EMU_ERRORS(X)
#undef X
    }
    return "unrecognized error code";
}
cudaError_t cudaGetLastError() {
    if (cudaError_t sticky = fault) return sticky;
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}
cudaError_t cudaPeekAtLastError() {
    const cudaError_t sticky = fault;
    return sticky != cudaSuccess ? sticky : last_error;
}
cudaError_t emu_fail(cudaError_t error) { return result(error); }

cudaError_t emu_max_dynamic_shared(int bytes) {
    if (bytes < 0 || size_t(bytes) > kDynamicShared) return result(cudaErrorInvalidValue);
    if (size_t(bytes) > max_dynamic) max_dynamic = size_t(bytes);
    return result(cudaSuccess);
}

cudaError_t cudaGetDeviceCount(int* count) {
    *count = 1;
    return result(cudaSuccess);
}
cudaError_t cudaGetDevice(int* device) {
    *device = 0;
    return result(cudaSuccess);
}
cudaError_t cudaSetDevice(int device) {
    return result(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
    if (device != 0) return result(cudaErrorInvalidDevice);
    *p = cudaDeviceProp{};
    snprintf(p->name, sizeof p->name, "CUDA emulator on the CPU");
    p->totalGlobalMem = total_memory();
    p->sharedMemPerBlock = kStaticShared;
    p->sharedMemPerBlockOptin = kDynamicShared;
    p->sharedMemPerMultiprocessor = kDynamicShared + 1024;
    p->totalConstMem = 65536;
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->warpSize = 32;
    p->maxThreadsPerBlock = p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 0x7fffffff;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->major = 8;
    p->multiProcessorCount = multiprocessors();
    p->l2CacheSize = 4 << 20;
    p->maxThreadsPerMultiProcessor = kResidentThreads;
    p->maxBlocksPerMultiProcessor = int(kResidentBlocks);
    p->memoryBusWidth = 256;
    p->clockRate = p->memoryClockRate = kKilohertz;
    p->managedMemory = p->concurrentManagedAccess = p->unifiedAddressing = p->canMapHostMemory = 1;
    p->pageableMemoryAccess = p->hostNativeAtomicSupported = p->cooperativeLaunch = 1;
    p->canUseHostPointerForRegisteredMem = p->hostRegisterSupported = p->memoryPoolsSupported = 1;
    p->concurrentKernels = p->streamPrioritiesSupported = p->computePreemptionSupported = 1;
    p->globalL1CacheSupported = p->localL1CacheSupported = p->unifiedFunctionPointers = 1;
    p->deviceOverlap = p->asyncEngineCount = 1;
    p->singleToDoublePrecisionPerfRatio = 2;
    p->memPitch = 0x7fffffff;
    p->textureAlignment = p->surfaceAlignment = 512;
    p->texturePitchAlignment = 32;
    p->reservedSharedMemPerBlock = 1024;
    p->accessPolicyMaxWindowSize = 1 << 27;
    p->persistingL2CacheMaxSize = 0;  // there is no cache whose lines could be told to stay
    p->maxTexture1D = p->maxTexture1DMipmap = p->maxSurface1D = 131072;
    for (int i = 0; i < 2; ++i) {
        p->maxTexture2D[i] = p->maxTexture2DMipmap[i] = p->maxSurface2D[i] = 32768;
        p->maxTexture2DGather[i] = p->maxTexture2DLayered[i] = p->maxSurface2DLayered[i] = 32768;
        p->maxTexture2DLinear[i] = 65000;
    }
    p->maxTexture2DLinear[2] = 1 << 21;
    for (int i = 0; i < 3; ++i)
        p->maxTexture3D[i] = p->maxTexture3DAlt[i] = p->maxSurface3D[i] = 16384;
    p->maxTextureCubemap = p->maxTextureCubemapLayered[0] = 32768;
    p->maxSurfaceCubemap = p->maxSurfaceCubemapLayered[0] = 32768;
    p->maxTexture1DLayered[0] = p->maxSurface1DLayered[0] = 32768;
    p->maxTexture1DLayered[1] = p->maxSurface1DLayered[1] = 2048;
    p->maxTexture2DLayered[2] = p->maxSurface2DLayered[2] = 2048;
    p->maxTextureCubemapLayered[1] = p->maxSurfaceCubemapLayered[1] = 2046;
    return result(cudaSuccess);
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
    cudaDeviceProp p;
    if (cudaError_t error = cudaGetDeviceProperties(&p, device)) return error;
    switch (attribute) {
#define X(name, number, expression) \
    case cudaDevAttr##name: *value = expression; return result(cudaSuccess);
        EMU_DEVICE_ATTRIBUTES(X)
#undef X
    }
    return result(cudaErrorInvalidValue);
}
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) {
    *device = 0;
    return result(cudaSuccess);
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
    if (device != 0) return result(cudaErrorInvalidDevice);
    snprintf(text, size_t(size), "0000:00:00.0");
    return result(cudaSuccess);
}
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
    *device = 0;
    return result(strcmp(text, "0000:00:00.0") ? cudaErrorInvalidDevice : cudaSuccess);
}
// There is one device, and it is no peer of itself.
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
    *can = 0;
    return result(device == 0 && peer == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return result(cudaErrorInvalidDevice); }
cudaError_t cudaDeviceDisablePeerAccess(int) { return result(cudaErrorPeerAccessNotEnabled); }
cudaError_t cudaDeviceGetP2PAttribute(int*, cudaDeviceP2PAttr, int, int) {
    return result(cudaErrorInvalidDevice);
}
static size_t limits[] = {1024, 1 << 20, 8 << 20, 2, 2048, 64, 0};
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
    if (unsigned(limit) >= sizeof limits / sizeof *limits) return result(cudaErrorUnsupportedLimit);
    limits[limit] = value;
    return result(cudaSuccess);
}
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
    if (unsigned(limit) >= sizeof limits / sizeof *limits) return result(cudaErrorUnsupportedLimit);
    *value = limits[limit];
    return result(cudaSuccess);
}

cudaError_t emu_function_attributes(cudaFuncAttributes* attributes, const void*) {
    *attributes = cudaFuncAttributes{};
    attributes->maxThreadsPerBlock = kMaxThreads;
    attributes->numRegs = 32;
    attributes->ptxVersion = attributes->binaryVersion = 80;
    attributes->maxDynamicSharedSizeBytes = int(max_dynamic);
    attributes->preferredShmemCarveout = cudaSharedmemCarveoutDefault;
    return result(cudaSuccess);
}
void emu_set_multiprocessors(int count) { emu::asked_for = count; }
cudaError_t emu_resident_blocks(int* blocks, int threads, size_t shared) {
    if (threads <= 0) return result(cudaErrorInvalidValue);
    *blocks = threads > kMaxThreads || shared > kDynamicShared
                  ? 0
                  : int(resident_grid(threads, shared) / uint64_t(multiprocessors()));
    return result(cudaSuccess);
}
cudaError_t emu_potential_grid(int* grid, int threads, size_t shared) {
    const cudaError_t error = emu_resident_blocks(grid, threads, shared);
    *grid *= multiprocessors();
    return error;
}
// Work has ended when a launch returns; what is left is to say how it ended.
cudaError_t cudaDeviceSynchronize() {
    for_the_host("cudaDeviceSynchronize", __builtin_return_address(0));
    host_has_waited();
    wait_for_all();
    return fault;
}
cudaError_t cudaDeviceReset() {
    host_has_waited();
    bool lent = false;
    heap().each([&](const Allocation& a) { lent |= a.lent; });
    fault = lent ? cudaErrorContextIsDestroyed : cudaSuccess;  // the caller's tensors are gone, too
    last_error = fault;
    return cudaSuccess;
}

}  // extern "C"

extern "C" long long emu_clock() {
    if (Core* c = core(); !c || !c->current) return clock();
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}
