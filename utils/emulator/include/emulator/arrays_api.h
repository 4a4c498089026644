// CUDA arrays, copies in two and three dimensions, texture and surface objects. An array lies row
// after row in device memory; what a texture object says of it is read when a texel is fetched.
#pragma once

#include "emulator/api.h"

enum cudaChannelFormatKind {
    cudaChannelFormatKindSigned,
    cudaChannelFormatKindUnsigned,
    cudaChannelFormatKindFloat,
    cudaChannelFormatKindNone
};
struct cudaChannelFormatDesc {
    int x, y, z, w;  // bits
    cudaChannelFormatKind f;
};
struct cudaExtent {
    size_t width, height, depth;
};
struct cudaPos {
    size_t x, y, z;
};
struct cudaPitchedPtr {
    void* ptr;
    size_t pitch, xsize, ysize;
};
struct cudaArray {
    cudaChannelFormatDesc desc;
    cudaExtent extent;  // elements; 0 where it has no such dimension
    unsigned flags;
    size_t element, pitch;  // bytes
    char* data;
};
typedef cudaArray* cudaArray_t;
typedef const cudaArray* cudaArray_const_t;
enum {
    cudaArrayDefault = 0,
    cudaArrayLayered = 1,
    cudaArraySurfaceLoadStore = 2,
    cudaArrayCubemap = 4,
    cudaArrayTextureGather = 8
};
struct cudaMemcpy3DParms {
    cudaArray_t srcArray;
    cudaPos srcPos;
    cudaPitchedPtr srcPtr;
    cudaArray_t dstArray;
    cudaPos dstPos;
    cudaPitchedPtr dstPtr;
    cudaExtent extent;
    cudaMemcpyKind kind;
};

typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;
enum cudaResourceType {
    cudaResourceTypeArray,
    cudaResourceTypeMipmappedArray,
    cudaResourceTypeLinear,
    cudaResourceTypePitch2D
};
enum cudaTextureAddressMode {
    cudaAddressModeWrap,
    cudaAddressModeClamp,
    cudaAddressModeMirror,
    cudaAddressModeBorder
};
enum cudaTextureFilterMode { cudaFilterModePoint, cudaFilterModeLinear };
enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero, cudaBoundaryModeClamp, cudaBoundaryModeTrap };
struct cudaResourceDesc {
    cudaResourceType resType;
    union {
        struct {
            cudaArray_t array;
        } array;
        struct {
            void* devPtr;
            cudaChannelFormatDesc desc;
            size_t sizeInBytes;
        } linear;
        struct {
            void* devPtr;
            cudaChannelFormatDesc desc;
            size_t width, height, pitchInBytes;
        } pitch2D;
    } res;
};
struct cudaResourceViewDesc {
    int format;
    size_t width, height, depth;
    unsigned firstMipmapLevel, lastMipmapLevel, firstLayer, lastLayer;
};
struct cudaTextureDesc {
    cudaTextureAddressMode addressMode[3];
    cudaTextureFilterMode filterMode;
    cudaTextureReadMode readMode;
    int sRGB;
    float borderColor[4];
    int normalizedCoords;
    unsigned maxAnisotropy;
    cudaTextureFilterMode mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
    int disableTrilinearOptimization, seamlessCubemap;
};

extern "C" {
cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent);
cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* desc,
                              cudaExtent extent, unsigned flags = 0);
cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* desc, size_t width,
                            size_t height = 0, unsigned flags = 0);
cudaError_t cudaFreeArray(cudaArray_t array);
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* desc, cudaExtent* extent, unsigned* flags,
                             cudaArray_t array);
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parameters);
cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent);
cudaError_t cudaCreateTextureObject(cudaTextureObject_t* texture, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* desc, const cudaResourceViewDesc* view);
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture);
cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* desc, cudaTextureObject_t texture);
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* surface, const cudaResourceDesc* resource);
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surface);

// Texels of 1 to 3 dimensions, and of a layer or a cube's face, to `out`: the array's own values,
// or floats where it holds floats or they are read as such.
void emu_fetch(cudaTextureObject_t texture, int dimensions, float x, float y, float z, int layer,
               void* out);
void emu_fetch_cube(cudaTextureObject_t texture, float x, float y, float z, void* out);
void emu_fetch_linear(cudaTextureObject_t texture, int index, void* out);
// Where a surface holds the byte x of a row; null outside of it.
void* emu_surface(cudaSurfaceObject_t surface, int x, int y, int z, size_t bytes,
                  cudaSurfaceBoundaryMode mode);
}

inline cudaExtent make_cudaExtent(size_t w, size_t h, size_t d) { return cudaExtent{w, h, d}; }
inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return cudaPos{x, y, z}; }
inline cudaPitchedPtr make_cudaPitchedPtr(void* p, size_t pitch, size_t xsize, size_t ysize) {
    return cudaPitchedPtr{p, pitch, xsize, ysize};
}
inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                   cudaChannelFormatKind f) {
    return cudaChannelFormatDesc{x, y, z, w, f};
}
namespace emu {
template <class T, class = void>
struct Channels {
    using Type = T;
    static constexpr int count = 1;
};
template <class T>
struct Channels<T, std::void_t<decltype(T::x)>> {
    using Type = decltype(T::x);
    static constexpr int count = int(sizeof(T) / sizeof(Type));
};
}  // namespace emu
template <class T>
cudaChannelFormatDesc cudaCreateChannelDesc() {
    using Type = typename emu::Channels<T>::Type;
    constexpr int n = emu::Channels<T>::count, bits = 8 * int(sizeof(Type));
    return {bits, n > 1 ? bits : 0, n > 2 ? bits : 0, n > 3 ? bits : 0,
            std::is_floating_point_v<Type> ? cudaChannelFormatKindFloat
            : std::is_signed_v<Type>       ? cudaChannelFormatKindSigned
                                           : cudaChannelFormatKindUnsigned};
}

namespace emu {
inline cudaMemcpy3DParms rows(cudaMemcpyKind kind, size_t width, size_t height) {
    cudaMemcpy3DParms p{};
    p.kind = kind;
    p.extent = cudaExtent{width, height, 1};
    return p;
}
inline cudaPitchedPtr rows_of(const void* first, size_t pitch, size_t height) {
    return cudaPitchedPtr{const_cast<void*>(first), pitch, pitch, height};
}
}  // namespace emu
inline cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t = nullptr) {
    return cudaMemcpy3D(p);
}
// x and width in bytes.
inline cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void* from,
                                       size_t pitch, size_t width, size_t height,
                                       cudaMemcpyKind kind) {
    auto p = emu::rows(kind, width / to->element, height);
    p.srcPtr = emu::rows_of(from, pitch, height);
    p.dstArray = to;
    p.dstPos = cudaPos{x / to->element, y, 0};
    return cudaMemcpy3D(&p);
}
inline cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from,
                                            size_t pitch, size_t width, size_t height,
                                            cudaMemcpyKind kind, cudaStream_t = nullptr) {
    return cudaMemcpy2DToArray(to, x, y, from, pitch, width, height, kind);
}
inline cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t x,
                                         size_t y, size_t width, size_t height,
                                         cudaMemcpyKind kind) {
    auto p = emu::rows(kind, width / from->element, height);
    p.srcArray = const_cast<cudaArray_t>(from);
    p.srcPos = cudaPos{x / from->element, y, 0};
    p.dstPtr = emu::rows_of(to, pitch, height);
    return cudaMemcpy3D(&p);
}
// So many bytes in rows as long as the array's.
inline cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void* from,
                                     size_t bytes, cudaMemcpyKind kind) {
    const size_t row = to->extent.width * to->element;
    if (bytes <= row) return cudaMemcpy2DToArray(to, x, y, from, bytes, bytes, 1, kind);
    return cudaMemcpy2DToArray(to, x, y, from, row, row, bytes / row, kind);
}
inline cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t from, size_t x, size_t y,
                                       size_t bytes, cudaMemcpyKind kind) {
    const size_t row = from->extent.width * from->element;
    if (bytes <= row) return cudaMemcpy2DFromArray(to, bytes, from, x, y, bytes, 1, kind);
    return cudaMemcpy2DFromArray(to, row, from, x, y, row, bytes / row, kind);
}

// Device functions. They are inlined, so that a fetch is a load of the line that calls them.
namespace emu {
template <class T>
EMU_INLINE T texel(cudaTextureObject_t texture, int dimensions, float x, float y, float z,
                   int layer) {
    alignas(16) char bytes[16];
    emu_fetch(texture, dimensions, x, y, z, layer, bytes);
    T result;
    __builtin_memcpy(&result, bytes, sizeof(T));
    return result;
}
}  // namespace emu
template <class T>
EMU_INLINE T tex1Dfetch(cudaTextureObject_t texture, int i) {
    alignas(16) char bytes[16];
    emu_fetch_linear(texture, i, bytes);
    T result;
    __builtin_memcpy(&result, bytes, sizeof(T));
    return result;
}
template <class T>
EMU_INLINE T texCubemap(cudaTextureObject_t texture, float x, float y, float z) {
    alignas(16) char bytes[16];
    emu_fetch_cube(texture, x, y, z, bytes);
    T result;
    __builtin_memcpy(&result, bytes, sizeof(T));
    return result;
}
template <class T>
EMU_INLINE T tex1D(cudaTextureObject_t texture, float x) {
    return emu::texel<T>(texture, 1, x, 0, 0, 0);
}
template <class T>
EMU_INLINE T tex2D(cudaTextureObject_t texture, float x, float y) {
    return emu::texel<T>(texture, 2, x, y, 0, 0);
}
template <class T>
EMU_INLINE T tex3D(cudaTextureObject_t texture, float x, float y, float z) {
    return emu::texel<T>(texture, 3, x, y, z, 0);
}
template <class T>
EMU_INLINE T tex1DLayered(cudaTextureObject_t texture, float x, int layer) {
    return emu::texel<T>(texture, 1, x, 0, 0, layer);
}
template <class T>
EMU_INLINE T tex2DLayered(cudaTextureObject_t texture, float x, float y, int layer) {
    return emu::texel<T>(texture, 2, x, y, 0, layer);
}
// There are no mipmaps: each texture is its own level 0.
template <class T>
EMU_INLINE T tex2DLod(cudaTextureObject_t texture, float x, float y, float) {
    return tex2D<T>(texture, x, y);
}

namespace emu {
template <class T>
void surface_read(T* value, cudaSurfaceObject_t surface, int x, int y, int z,
                  cudaSurfaceBoundaryMode mode) {
    const void* from = emu_surface(surface, x, y, z, sizeof(T), mode);
    if (from) __builtin_memcpy(value, from, sizeof(T));
    else __builtin_memset(value, 0, sizeof(T));
}
template <class T>
void surface_write(T value, cudaSurfaceObject_t surface, int x, int y, int z,
                   cudaSurfaceBoundaryMode mode) {
    if (void* to = emu_surface(surface, x, y, z, sizeof(T), mode))
        __builtin_memcpy(to, &value, sizeof(T));
}
}  // namespace emu
#define EMU_SURFACE(name, at, y, z)                                         \
    template <class T>                                                      \
    void name##read(T* value, cudaSurfaceObject_t surface, EMU_EXPAND at,   \
                    cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {  \
        emu::surface_read(value, surface, x, y, z, mode);                   \
    }                                                                       \
    template <class T>                                                      \
    T name##read(cudaSurfaceObject_t surface, EMU_EXPAND at,                \
                 cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {     \
        T value;                                                            \
        emu::surface_read(&value, surface, x, y, z, mode);                  \
        return value;                                                       \
    }                                                                       \
    template <class T>                                                      \
    void name##write(T value, cudaSurfaceObject_t surface, EMU_EXPAND at,   \
                     cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) { \
        emu::surface_write(value, surface, x, y, z, mode);                  \
    }
#define EMU_EXPAND(...) __VA_ARGS__
EMU_SURFACE(surf1D, (int x), 0, 0)
EMU_SURFACE(surf2D, (int x, int y), y, 0)
EMU_SURFACE(surf3D, (int x, int y, int z), y, z)
EMU_SURFACE(surf2DLayered, (int x, int y, int layer), y, layer)
#undef EMU_SURFACE
#undef EMU_EXPAND
