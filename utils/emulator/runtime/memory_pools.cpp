// Pools of stream-ordered allocation: how much was taken from each, now and at most.
#include <algorithm>
#include <map>
#include <mutex>

#include "../include/emulator/pools_api.h"
#include "device.h"
#include "heap.h"
#include "memory.h"
#include "pinned_copies.h"
#include "streams.h"

struct EmuPool {
    cudaMemPoolProps properties;
    uint64_t threshold, used, most;
    int reuse[4];
};

using namespace emu;

namespace {

std::mutex mutex;
EmuPool device_pool{};
EmuPool* current = &device_pool;

struct Taken {
    EmuPool* pool;
    size_t bytes;
};
std::map<void*, Taken>& taken = *new std::map<void*, Taken>;

}  // namespace

extern "C" {

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
    *pool = new EmuPool{*properties, 0, 0, 0, {}};
    ++objects;
    return result(cudaSuccess);
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!pool || pool == &device_pool) return result(cudaErrorInvalidValue);
    if (current == pool) current = &device_pool;
    for (auto& [pointer, t] : taken)
        if (t.pool == pool) t.pool = nullptr;
    delete pool;
    --objects;
    return result(cudaSuccess);
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    std::lock_guard<std::mutex> lock(mutex);
    switch (attribute) {
        case cudaMemPoolAttrReleaseThreshold:
            pool->threshold = *static_cast<uint64_t*>(value);
            break;
        case cudaMemPoolAttrUsedMemHigh:
        case cudaMemPoolAttrReservedMemHigh: pool->most = pool->used; break;
        case cudaMemPoolAttrUsedMemCurrent:
        case cudaMemPoolAttrReservedMemCurrent: return result(cudaErrorInvalidValue);
        default: pool->reuse[attribute & 3] = *static_cast<int*>(value);
    }
    return result(cudaSuccess);
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    std::lock_guard<std::mutex> lock(mutex);
    uint64_t& amount = *static_cast<uint64_t*>(value);
    switch (attribute) {
        case cudaMemPoolAttrReleaseThreshold: amount = pool->threshold; break;
        case cudaMemPoolAttrUsedMemHigh:
        case cudaMemPoolAttrReservedMemHigh: amount = pool->most; break;
        case cudaMemPoolAttrUsedMemCurrent:
        case cudaMemPoolAttrReservedMemCurrent: amount = pool->used; break;
        default: *static_cast<int*>(value) = pool->reuse[attribute & 3];
    }
    return result(cudaSuccess);
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
    *pool = &device_pool;
    return result(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
    *pool = current;
    return result(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
    current = pool;
    return result(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t emu_pool_take(cudaMemPool_t pool, void* pointer, size_t bytes, cudaStream_t stream) {
    const char* caller = (const char*)__builtin_return_address(0) - 1;
    copy_in_stream(stream, "cudaMallocAsync", pointer, nullptr, bytes, false, caller);
    std::lock_guard<std::mutex> lock(mutex);
    if (!pool) pool = current;
    taken[pointer] = Taken{pool, bytes};
    pool->used += bytes;
    pool->most = std::max(pool->most, pool->used);
    return result(cudaSuccess);
}
// In the order of its stream, which no other work in the memory may come behind; here at once.
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
    const char* caller = (const char*)__builtin_return_address(0) - 1;
    for_the_host("cudaFreeAsync", caller);
    finish_copies();
    size_t bytes = 1;
    {
        std::lock_guard<std::mutex> lock(mutex);
        auto it = taken.find(pointer);
        if (it != taken.end()) {
            bytes = it->second.bytes;
            if (it->second.pool) it->second.pool->used -= it->second.bytes;
            taken.erase(it);
        }
    }
    copy_in_stream(stream, "cudaFreeAsync", pointer, nullptr, bytes, false, caller);
    return result(!pointer || heap().free(pointer) ? cudaSuccess : cudaErrorInvalidValue);
}

}  // extern "C"
