// The CUDA runtime API on host memory.
#include "device.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "block.h"
#include "heap.h"

namespace emu {
namespace {

cudaError_t last_error = cudaSuccess;
bool lost = false;
size_t max_dynamic = kStaticShared;
std::mutex pinned_mutex;
std::map<const char*, size_t> pinned;  // host memory that kernels may use, and its bytes

std::string next_name;  // of the pointer that memory is allocated for

cudaError_t result(cudaError_t error) {
    if (lost) return last_error;
    if (error != cudaSuccess) last_error = error;
    return error;
}

size_t total_memory() { return size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE)); }

// What nvcc refuses to compile in a kernel ends the launch here.
void for_the_host(const char* function, const void* pc) {
    if (Core* c = core(); c && c->current) c->refuse(function, pc);
}

}  // namespace

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
bool is_global(const void* address) { return heap().room(address) > 0; }
bool is_pinned(const void* address) {
    std::lock_guard<std::mutex> lock(pinned_mutex);
    auto after = pinned.upper_bound(static_cast<const char*>(address));
    if (after == pinned.begin()) return false;
    auto& [first, bytes] = *std::prev(after);
    return static_cast<const char*>(address) < first + bytes;
}

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

// "(void**)&d_out, n * 4": d_out. None where the first argument is not that simple.
void emu_name_next(const char* arguments) {
    std::string first(arguments, strcspn(arguments, ","));
    size_t at = first.rfind('&');
    next_name = at == std::string::npos ? "" : first.substr(first.find_first_not_of(' ', at + 1));
    if (next_name.find_first_of("()<{ ") != std::string::npos) next_name.clear();
}
cudaError_t emu_malloc(void** pointer, size_t bytes, const char* name, size_t element,
                       size_t shift) {
    for_the_host("cudaMalloc", __builtin_return_address(0));
    if (!pointer) return result(cudaErrorInvalidValue);
    *pointer = nullptr;
    if (bytes == 0 || lost) return result(cudaSuccess);
    if (bytes > total_memory()) return result(cudaErrorMemoryAllocation);
    Allocation* a = heap().allocate(bytes, name ? name : next_name.c_str(), element, shift);
    next_name.clear();
    if (!a) return result(cudaErrorMemoryAllocation);
    *pointer = a->first;
    return result(cudaSuccess);
}
cudaError_t emu_malloc_managed(void** pointer, size_t bytes, const char* name, size_t element) {
    cudaError_t error = emu_malloc(pointer, bytes, name, element);
    if (Allocation* a = heap().find(*pointer)) a->managed = a->all_written = true;
    return error;
}
cudaError_t cudaFree(void* pointer) {
    for_the_host("cudaFree", __builtin_return_address(0));
    return result(!pointer || heap().free(pointer) ? cudaSuccess : cudaErrorInvalidValue);
}
// Memory of the caller's that kernels will be given pointers into.
void emu_lend_memory(const void* first, size_t bytes) { heap().lend(first, bytes); }
void emu_take_back_memory(const void* first) { heap().take_back(first); }
cudaError_t emu_malloc_host(void** pointer, size_t bytes) {
    *pointer = malloc(bytes);
    if (*pointer) emu_pin(*pointer, bytes);
    return result(*pointer || !bytes ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t emu_pin(void* pointer, size_t bytes) {
    std::lock_guard<std::mutex> lock(pinned_mutex);
    pinned[static_cast<const char*>(pointer)] = bytes;
    return result(cudaSuccess);
}
cudaError_t emu_unpin(void* pointer) {
    std::lock_guard<std::mutex> lock(pinned_mutex);
    return result(pinned.erase(static_cast<const char*>(pointer)) ? cudaSuccess
                                                                  : cudaErrorInvalidValue);
}
cudaError_t cudaFreeHost(void* pointer) {
    if (pointer && emu_unpin(pointer) != cudaSuccess) return result(cudaErrorInvalidValue);
    free(pointer);
    return result(cudaSuccess);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
    void* p = const_cast<void*>(pointer);
    if (heap().room(p)) *attributes = {cudaMemoryTypeDevice, 0, p, nullptr};
    else *attributes = {is_pinned(p) ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered, 0, p, p};
    return result(cudaSuccess);
}
cudaError_t emu_fail(cudaError_t error) { return result(error); }

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    for_the_host("cudaMemcpy", __builtin_return_address(0));
    if (lost || bytes == 0) return result(cudaSuccess);
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return result(cudaErrorInvalidMemcpyDirection);
    size_t to_room = heap().room(to), from_room = heap().room(from);
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (!to || !from || (to_room && to_room < bytes) || (from_room && from_room < bytes) ||
        (to_device && !to_room) || (from_device && !from_room))
        return result(cudaErrorInvalidValue);
    memmove(to, from, bytes);
    if (to_room) heap().mark_written(to, bytes);
    return result(cudaSuccess);
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) {
    for_the_host("cudaMemset", __builtin_return_address(0));
    if (lost || bytes == 0) return result(cudaSuccess);
    if (heap().room(to) < bytes) return result(cudaErrorInvalidValue);
    memset(to, value, bytes);
    heap().mark_written(to, bytes);
    return result(cudaSuccess);
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
    if (width > to_pitch || width > from_pitch) return result(cudaErrorInvalidPitchValue);
    for (size_t row = 0; row < height; ++row) {
        cudaError_t error = cudaMemcpy((char*)to + row * to_pitch,
                                       (const char*)from + row * from_pitch, width, kind);
        if (error != cudaSuccess) return error;
    }
    return result(cudaSuccess);
}
cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
    if (width > pitch) return result(cudaErrorInvalidValue);
    for (size_t row = 0; row < height; ++row)
        if (cudaError_t error = cudaMemset((char*)to + row * pitch, value, width)) return error;
    return result(cudaSuccess);
}
cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
    *total = total_memory();
    *available = size_t(sysconf(_SC_AVPHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE));
    return result(cudaSuccess);
}
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
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
    cudaDeviceProp p;
    if (cudaError_t error = cudaGetDeviceProperties(&p, device)) return error;
    switch (attribute) {
        case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
        case cudaDevAttrMaxBlockDimX: *value = p.maxThreadsDim[0]; break;
        case cudaDevAttrMaxBlockDimY: *value = p.maxThreadsDim[1]; break;
        case cudaDevAttrMaxBlockDimZ: *value = p.maxThreadsDim[2]; break;
        case cudaDevAttrMaxGridDimX: *value = p.maxGridSize[0]; break;
        case cudaDevAttrMaxGridDimY: *value = p.maxGridSize[1]; break;
        case cudaDevAttrMaxGridDimZ: *value = p.maxGridSize[2]; break;
        case cudaDevAttrTotalConstantMemory: *value = int(p.totalConstMem); break;
        case cudaDevAttrMaxRegistersPerBlock: *value = p.regsPerBlock; break;
        case cudaDevAttrIntegrated: *value = p.integrated; break;
        case cudaDevAttrConcurrentKernels: *value = p.concurrentKernels; break;
        case cudaDevAttrMemoryClockRate: *value = 1000000; break;
        case cudaDevAttrGlobalMemoryBusWidth: *value = p.memoryBusWidth; break;
        case cudaDevAttrUnifiedAddressing: *value = p.unifiedAddressing; break;
        case cudaDevAttrManagedMemory: *value = p.managedMemory; break;
        case cudaDevAttrConcurrentManagedAccess: *value = p.concurrentManagedAccess; break;
        case cudaDevAttrCooperativeLaunch: *value = p.cooperativeLaunch; break;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
            *value = int(p.sharedMemPerMultiprocessor);
            break;
        case cudaDevAttrMaxBlocksPerMultiprocessor: *value = p.maxBlocksPerMultiProcessor; break;
        case cudaDevAttrMaxSharedMemoryPerBlock: *value = int(p.sharedMemPerBlock); break;
        case cudaDevAttrWarpSize: *value = 32; break;
        case cudaDevAttrClockRate:
            *value = 1000000;
            break;  // kHz: clock64() ticks once a nanosecond
        case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
        case cudaDevAttrL2CacheSize: *value = p.l2CacheSize; break;
        case cudaDevAttrMaxThreadsPerMultiProcessor: *value = p.maxThreadsPerMultiProcessor; break;
        case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
        case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = int(p.sharedMemPerBlockOptin); break;
        default: return result(cudaErrorInvalidValue);
    }
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
