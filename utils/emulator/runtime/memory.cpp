// CUDA's functions that allocate, pin, copy and fill. Device memory is the process's own, like the
// host's; heap.h knows which is which.
#include "memory.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "../include/emulator/api.h"
#include "coverage.h"
#include "device.h"
#include "faults.h"
#include "heap.h"
#include "pinned_copies.h"
#include "streams.h"

namespace emu {
namespace {

std::mutex pinned_mutex;
std::map<const char*, size_t> pinned;  // host memory that kernels may use, and its bytes

std::string next_name;  // of the pointer that memory is allocated for

}  // namespace

bool any_pinned = false;
std::atomic<long> objects{0};
constexpr size_t kObject = 4096;  // bytes that each of them counts as
static size_t pinned_bytes() {
    std::lock_guard<std::mutex> lock(pinned_mutex);
    size_t sum = 0;
    for (auto& [first, bytes] : pinned) sum += bytes;
    return sum;
}
bool is_pinned(const void* address) {
    std::lock_guard<std::mutex> lock(pinned_mutex);
    auto after = pinned.upper_bound(static_cast<const char*>(address));
    if (after == pinned.begin()) return false;
    auto& [first, bytes] = *std::prev(after);
    return static_cast<const char*>(address) < first + bytes;
}

void copy_now(void* to, const void* from, size_t bytes) {
    OpenMemory open;
    memmove(to, from, bytes);
    if (heap().room(to)) {
        heap().mark_written(to, bytes);
        cover_host_write(to, bytes);
    } else if (heap().room(from)) {
        cover_to_host();
    }
}

}  // namespace emu

using namespace emu;

extern "C" {

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
    if ((bytes == 0 && !name) || device_lost()) return result(cudaSuccess);
    if (bytes > total_memory()) return result(cudaErrorMemoryAllocation);
    Allocation* a = heap().allocate(bytes, name ? name : next_name.c_str(), element, shift);
    next_name.clear();
    if (!a) return result(cudaErrorMemoryAllocation);
    *pointer = a->first;
    return result(cudaSuccess);
}
cudaError_t emu_malloc_managed(void** pointer, size_t bytes, const char* name, size_t element) {
    if (heap().locked()) return result(cudaErrorNotPermitted);  // it would be the host's, too
    cudaError_t error = emu_malloc(pointer, bytes, name, element);
    if (Allocation* a = heap().find(*pointer)) a->managed = a->all_written = true;
    several_streams = true;  // the host is one more that uses it
    return error;
}
cudaError_t cudaFree(void* pointer) {
    for_the_host("cudaFree", __builtin_return_address(0));
    host_has_waited();
    if (pointer) wait_for_all();
    return result(!pointer || heap().free(pointer) ? cudaSuccess : cudaErrorInvalidValue);
}
// Memory of the caller's that kernels will be given pointers into.
void emu_lend_memory(const void* first, size_t bytes) { heap().lend(first, bytes); }
void emu_take_back_memory(const void* first) { heap().take_back(first); }
// Host code that reaches device memory ends its process, with exit status kHostReached.
void emu_lock_memory() {
    install_fault_handlers();
    heap().lock();
}
// For a process that allocates often: of 64 MiB gaps, a terabyte has room for some thousands.
void emu_set_gap(size_t bytes) { heap().gap = bytes; }
// More (1) or fewer (-1) may reach it.
void emu_open_memory(int change) { heap().open(change); }
// Bytes of device memory from an address on; 0: it is none.
size_t emu_room(const void* address) { return heap().room(address); }
// Bytes that the process has allocated and not freed, on the device, or pinned on the host; and
// what it has made and not destroyed.
size_t emu_live_bytes() {
    return heap().live() + kept_by_kernels() + pinned_bytes() + kObject * size_t(objects.load());
}
cudaError_t emu_malloc_host(void** pointer, size_t bytes) {
    *pointer = malloc(bytes);
    if (*pointer) emu_pin(*pointer, bytes);
    return result(*pointer || !bytes ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t emu_pin(void* pointer, size_t bytes) {
    std::lock_guard<std::mutex> lock(pinned_mutex);
    pinned[static_cast<const char*>(pointer)] = bytes;
    any_pinned = true;
    return result(cudaSuccess);
}
cudaError_t emu_unpin(void* pointer) {
    host_has_waited();
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
// What CUDA would refuse a copy for.
static cudaError_t refusal(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    size_t to_room = heap().room(to), from_room = heap().room(from);
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (!to || !from || (to_room && to_room < bytes) || (from_room && from_room < bytes) ||
        (to_device && !to_room) || (from_device && !from_room))
        return cudaErrorInvalidValue;
    return heap().locked() && from_room && !to_room ? cudaErrorNotPermitted : cudaSuccess;
}
static cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, bool waits,
                        const void* pc) {
    if (waits) host_has_waited();
    else finish_copies();
    if (device_lost() || bytes == 0) return result(cudaSuccess);
    if (cudaError_t error = refusal(to, from, bytes, kind)) return result(error);
    if (!waits && is_pinned(heap().room(to) ? from : to)) copy_pinned(to, from, bytes, pc);
    else copy_now(to, from, bytes);
    return result(cudaSuccess);
}
static cudaError_t copy_piece(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                              const char* caller) {
    for_the_host("cudaMemcpy", caller);
    const bool waits = !heap().room(to) || !heap().room(from);
    copy_in_stream(nullptr, "cudaMemcpy", to, from, bytes, waits, caller);
    return copy(to, from, bytes, kind, true, caller);
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    cover_copy(to, from, bytes);
    return copy_piece(to, from, bytes, kind, (const char*)__builtin_return_address(0) - 1);
}
static cudaError_t copy_in(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                           cudaStream_t stream, const char* caller) {
    for_the_host("cudaMemcpyAsync", caller);
    // From and to memory that is not pinned it comes by way of the driver's own.
    const bool waits = !heap().room(to) && !is_pinned(to);
    copy_in_stream(stream, "cudaMemcpyAsync", to, from, bytes, waits, caller);
    return copy(to, from, bytes, kind, waits, caller);
}
cudaError_t emu_memcpy_in(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                          cudaStream_t stream) {
    cover_copy(to, from, bytes);
    return copy_in(to, from, bytes, kind, stream, (const char*)__builtin_return_address(0) - 1);
}
cudaError_t emu_memcpy_2d_in(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                             size_t width, size_t height, cudaMemcpyKind kind,
                             cudaStream_t stream) {
    const char* caller = (const char*)__builtin_return_address(0) - 1;
    if (width > to_pitch || width > from_pitch) return result(cudaErrorInvalidPitchValue);
    cover_copy(to, from, width);
    for (size_t row = 0; row < height; ++row) {
        const cudaError_t error =
            copy_in(static_cast<char*>(to) + row * to_pitch,
                    static_cast<const char*>(from) + row * from_pitch, width, kind, stream, caller);
        if (error != cudaSuccess) return error;
    }
    return result(cudaSuccess);
}
static cudaError_t fill(void* to, int value, size_t bytes) {
    finish_copies();
    if (device_lost() || bytes == 0) return result(cudaSuccess);
    if (heap().room(to) < bytes) return result(cudaErrorInvalidValue);
    OpenMemory open;
    memset(to, value, bytes);
    heap().mark_written(to, bytes);
    cover_host_write(to, bytes);
    return result(cudaSuccess);
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) {
    const char* caller = (const char*)__builtin_return_address(0) - 1;
    for_the_host("cudaMemset", caller);
    copy_in_stream(nullptr, "cudaMemset", to, nullptr, bytes, false, caller);
    return fill(to, value, bytes);
}
cudaError_t emu_memset_in(void* to, int value, size_t bytes, cudaStream_t stream) {
    const char* caller = (const char*)__builtin_return_address(0) - 1;
    for_the_host("cudaMemsetAsync", caller);
    copy_in_stream(stream, "cudaMemsetAsync", to, nullptr, bytes, false, caller);
    return fill(to, value, bytes);
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
    cover_copy(to, from, width);
    return emu::copy_rows(to, to_pitch, from, from_pitch, width, height, kind,
                          (const char*)__builtin_return_address(0) - 1);
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

}  // extern "C"

cudaError_t emu::copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                           size_t width, size_t height, cudaMemcpyKind kind, const char* caller) {
    if (width > to_pitch || width > from_pitch) return result(cudaErrorInvalidPitchValue);
    for (size_t row = 0; row < height; ++row) {
        cudaError_t error = copy_piece((char*)to + row * to_pitch,
                                       (const char*)from + row * from_pitch, width, kind, caller);
        if (error != cudaSuccess) return error;
    }
    return result(cudaSuccess);
}
