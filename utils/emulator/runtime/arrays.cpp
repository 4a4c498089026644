// CUDA arrays: where their elements lie, and copies in and out of them, row by row.
#include <cstring>

#include "../include/emulator/arrays_api.h"
#include "coverage.h"
#include "device.h"
#include "memory.h"

using namespace emu;

namespace {

size_t at_least_one(size_t n) { return n ? n : 1; }

// One side of a copy: rows of `pitch` bytes, `rows` of them in a slice.
struct Side {
    char* first;
    size_t pitch, rows;
    Side(const cudaArray* a, const cudaPos& pos, const cudaPitchedPtr& p) {
        if (a) {
            pitch = a->pitch;
            rows = at_least_one(a->extent.height);
            first = a->data + pos.x * a->element;
        } else {
            pitch = p.pitch;
            rows = p.ysize;
            first = static_cast<char*>(p.ptr) + pos.x;
        }
        first += (pos.z * rows + pos.y) * pitch;
    }
    char* slice(size_t z) const { return first + z * rows * pitch; }
};

}  // namespace

extern "C" {

cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent) {
    const size_t pitch = (extent.width + 511) / 512 * 512;
    void* first = nullptr;
    const cudaError_t error = emu_malloc(&first, pitch * extent.height * extent.depth, nullptr, 1);
    *pointer = cudaPitchedPtr{first, pitch, extent.width, extent.height};
    return error;
}
cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* desc,
                              cudaExtent extent, unsigned flags) {
    cudaArray made{*desc, extent, flags, 0, 0, nullptr};
    made.element = size_t(desc->x + desc->y + desc->z + desc->w) / 8;
    made.pitch = made.element * extent.width;
    void* data = nullptr;
    const size_t rows = at_least_one(extent.height) * at_least_one(extent.depth);
    if (cudaError_t error = emu_malloc(&data, made.pitch * rows, nullptr, made.element))
        return error;
    made.data = static_cast<char*>(data);
    *array = new cudaArray(made);
    return result(cudaSuccess);
}
cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* desc, size_t width,
                            size_t height, unsigned flags) {
    return cudaMalloc3DArray(array, desc, cudaExtent{width, height, 0}, flags);
}
cudaError_t cudaFreeArray(cudaArray_t array) {
    if (!array) return result(cudaSuccess);
    const cudaError_t error = cudaFree(array->data);
    delete array;
    return error;
}
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* desc, cudaExtent* extent, unsigned* flags,
                             cudaArray_t array) {
    if (desc) *desc = array->desc;
    if (extent) *extent = array->extent;
    if (flags) *flags = array->flags;
    return result(cudaSuccess);
}
// The extent's width is in elements where an array takes part, else in bytes.
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {
    const cudaArray* array = p->srcArray ? p->srcArray : p->dstArray;
    const size_t width = p->extent.width * (array ? array->element : 1);
    const Side from(p->srcArray, p->srcPos, p->srcPtr), to(p->dstArray, p->dstPos, p->dstPtr);
    const char* caller = (const char*)__builtin_return_address(0) - 1;
    cover_copy(to.first, from.first, width);
    for (size_t z = 0; z < p->extent.depth; ++z)
        if (cudaError_t error = copy_rows(to.slice(z), to.pitch, from.slice(z), from.pitch, width,
                                          p->extent.height, p->kind, caller))
            return error;
    return result(cudaSuccess);
}
cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
    for (size_t z = 0; z < extent.depth; ++z)
        if (cudaError_t error = cudaMemset2D(static_cast<char*>(to.ptr) + z * to.ysize * to.pitch,
                                             to.pitch, value, extent.width, extent.height))
            return error;
    return result(cudaSuccess);
}

}  // extern "C"
