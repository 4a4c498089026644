// CUDA's functions about the device: errors, properties, streams and events. All of them are
// answers: work has ended when a launch returns, and there is one stream. Memory is in memory.cpp.
#include "device.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "../include/emulator/api.h"
#include "block.h"

namespace emu {
namespace {

cudaError_t last_error = cudaSuccess;
bool lost = false;
size_t max_dynamic = kStaticShared;

constexpr int kKilohertz = 1000000;  // clock64() ticks once a nanosecond

}  // namespace

cudaError_t result(cudaError_t error) {
    if (lost) return last_error;
    if (error != cudaSuccess) last_error = error;
    return error;
}

size_t total_memory() { return size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE)); }

void for_the_host(const char* function, const void* pc) {
    Core* c = core();
    if (c && c->current)
        c->fail(cudaErrorLaunchFailure, "host-call", {}, pc,
                "calls %s, which is for host code alone", function);
}

void set_error(cudaError_t error) {
    if (lost) return;
    last_error = error;
    switch (error) {
        case cudaErrorInvalidValue:
        case cudaErrorInvalidConfiguration:
        case cudaErrorNotSupported: break;
        default: lost = true;
    }
}
bool device_lost() { return lost; }
size_t dynamic_shared_limit() { return max_dynamic; }

}  // namespace emu

struct EmuStream {
    int unused;
};
struct EmuEvent {
    std::chrono::steady_clock::time_point time;
    bool recorded, timed;
};

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
    cudaError_t error = last_error;
    if (!lost) last_error = cudaSuccess;
    return error;
}
cudaError_t cudaPeekAtLastError() { return last_error; }
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
    p->multiProcessorCount = 16;
    p->l2CacheSize = 4 << 20;
    p->maxThreadsPerMultiProcessor = 2048;
    p->maxBlocksPerMultiProcessor = 32;
    p->memoryBusWidth = 256;
    p->managedMemory = p->concurrentManagedAccess = p->unifiedAddressing = p->canMapHostMemory = 1;
    return result(cudaSuccess);
}
// -1 for one that nobody knows here.
static int attribute_of(const cudaDeviceProp& p, cudaDeviceAttr attribute) {
    switch (attribute) {
        case cudaDevAttrMaxThreadsPerBlock: return p.maxThreadsPerBlock;
        case cudaDevAttrMaxBlockDimX: return p.maxThreadsDim[0];
        case cudaDevAttrMaxBlockDimY: return p.maxThreadsDim[1];
        case cudaDevAttrMaxBlockDimZ: return p.maxThreadsDim[2];
        case cudaDevAttrMaxGridDimX: return p.maxGridSize[0];
        case cudaDevAttrMaxGridDimY: return p.maxGridSize[1];
        case cudaDevAttrMaxGridDimZ: return p.maxGridSize[2];
        case cudaDevAttrTotalConstantMemory: return int(p.totalConstMem);
        case cudaDevAttrMaxRegistersPerBlock: return p.regsPerBlock;
        case cudaDevAttrIntegrated: return p.integrated;
        case cudaDevAttrConcurrentKernels: return p.concurrentKernels;
        case cudaDevAttrMemoryClockRate: return kKilohertz;
        case cudaDevAttrGlobalMemoryBusWidth: return p.memoryBusWidth;
        case cudaDevAttrUnifiedAddressing: return p.unifiedAddressing;
        case cudaDevAttrManagedMemory: return p.managedMemory;
        case cudaDevAttrConcurrentManagedAccess: return p.concurrentManagedAccess;
        case cudaDevAttrCooperativeLaunch: return p.cooperativeLaunch;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return int(p.sharedMemPerMultiprocessor);
        case cudaDevAttrMaxBlocksPerMultiprocessor: return p.maxBlocksPerMultiProcessor;
        case cudaDevAttrMaxSharedMemoryPerBlock: return int(p.sharedMemPerBlock);
        case cudaDevAttrWarpSize: return 32;
        case cudaDevAttrClockRate: return kKilohertz;
        case cudaDevAttrMultiProcessorCount: return p.multiProcessorCount;
        case cudaDevAttrL2CacheSize: return p.l2CacheSize;
        case cudaDevAttrMaxThreadsPerMultiProcessor: return p.maxThreadsPerMultiProcessor;
        case cudaDevAttrComputeCapabilityMajor: return p.major;
        case cudaDevAttrComputeCapabilityMinor: return p.minor;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: return int(p.sharedMemPerBlockOptin);
        default: return -1;
    }
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
    cudaDeviceProp p;
    if (cudaError_t error = cudaGetDeviceProperties(&p, device)) return error;
    const int known = attribute_of(p, attribute);
    if (known < 0) return result(cudaErrorInvalidValue);
    *value = known;
    return result(cudaSuccess);
}
// Work has ended when a launch returns; what is left is to say how it ended.
cudaError_t cudaDeviceSynchronize() {
    for_the_host("cudaDeviceSynchronize", __builtin_return_address(0));
    return lost ? last_error : cudaSuccess;
}
cudaError_t cudaDeviceReset() {
    lost = false;
    last_error = cudaSuccess;
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    *stream = new EmuStream{};
    return result(cudaSuccess);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    if (!stream) return result(cudaErrorInvalidResourceHandle);
    delete stream;
    return result(cudaSuccess);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
    *event = new EmuEvent{{}, false, !(flags & cudaEventDisableTiming)};
    return result(cudaSuccess);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    if (!event) return result(cudaErrorInvalidResourceHandle);
    delete event;
    return result(cudaSuccess);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
    if (!event) return result(cudaErrorInvalidResourceHandle);
    event->time = std::chrono::steady_clock::now();
    event->recorded = true;
    return result(cudaSuccess);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
    if (!start || !stop || !start->recorded || !stop->recorded || !start->timed || !stop->timed)
        return result(cudaErrorInvalidResourceHandle);
    *milliseconds = std::chrono::duration<float, std::milli>(stop->time - start->time).count();
    return result(cudaSuccess);
}

}  // extern "C"
