// Texture and surface objects: which texels a coordinate means, and what lies between them. A texel
// that is fetched is a load of its bytes, by the line that fetches.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "../include/emulator/arrays_api.h"
#include "../include/emulator/narrow.h"
#include "block.h"
#include "device.h"
#include "memory.h"
#include "trace.h"
#include "watch.h"

using namespace emu;

namespace {

struct Texture {
    cudaResourceDesc resource;
    cudaTextureDesc desc;
    cudaChannelFormatDesc format;
    const char* data;
    size_t element, pitch;  // bytes
    int size[3];            // texels; at least 1
    bool layered;           // the last dimension is of layers or faces
    int channels;

    bool as_floats() const {
        return format.f == cudaChannelFormatKindFloat ||
               desc.readMode == cudaReadModeNormalizedFloat;
    }
    const char* texel(const int* at) const {
        return data + (size_t(at[2]) * size_t(size[1]) + size_t(at[1])) * pitch +
               size_t(at[0]) * element;
    }
};

bool fill(Texture& t, const cudaResourceDesc& resource) {
    t.resource = resource;
    int size[3] = {1, 1, 1};
    switch (resource.resType) {
        case cudaResourceTypeArray: {
            const cudaArray* a = resource.res.array.array;
            if (!a) return false;
            t.format = a->desc;
            t.data = a->data;
            t.pitch = a->pitch;
            t.layered = a->flags & (cudaArrayLayered | cudaArrayCubemap);
            size[0] = int(a->extent.width);
            size[1] = int(a->extent.height);
            size[2] = int(a->extent.depth);
            break;
        }
        case cudaResourceTypeLinear:
            t.format = resource.res.linear.desc;
            t.data = static_cast<const char*>(resource.res.linear.devPtr);
            t.pitch = resource.res.linear.sizeInBytes;
            break;
        case cudaResourceTypePitch2D:
            t.format = resource.res.pitch2D.desc;
            t.data = static_cast<const char*>(resource.res.pitch2D.devPtr);
            t.pitch = resource.res.pitch2D.pitchInBytes;
            size[0] = int(resource.res.pitch2D.width);
            size[1] = int(resource.res.pitch2D.height);
            break;
        default: return false;
    }
    const cudaChannelFormatDesc& f = t.format;
    t.element = size_t(f.x + f.y + f.z + f.w) / 8;
    if (!t.element) return false;
    t.channels = (f.x > 0) + (f.y > 0) + (f.z > 0) + (f.w > 0);
    if (resource.resType == cudaResourceTypeLinear) size[0] = int(t.pitch / t.element);
    for (int i = 0; i < 3; ++i) t.size[i] = size[i] > 0 ? size[i] : 1;
    return true;
}

// The running thread loads a texel. Those of an array count by its rows here: how a card arranges
// them, nobody says.
void note_load(const Texture& t, const char* texel, const void* pc) {
    const Core* c = core();
    if (!c || !c->current) return;
    trace_access(texel, t.element, kLoad, pc);
    if (running.core) watch_range(texel, t.element, kLoad, pc);
}

// One channel, as a float: normalized where it is an integer that is to be read so.
float channel(const Texture& t, const char* texel, int c) {
    const int bits = t.format.x;
    const char* p = texel + c * bits / 8;
    if (t.format.f == cudaChannelFormatKindFloat) {
        if (bits == 16) {
            uint16_t half;
            memcpy(&half, p, 2);
            return widen(Half{}, half);
        }
        float value;
        memcpy(&value, p, 4);
        return value;
    }
    const bool is_signed = t.format.f == cudaChannelFormatKindSigned;
    long long value = 0;
    memcpy(&value, p, size_t(bits) / 8);
    if (is_signed && value >> (bits - 1) & 1) value -= 1ll << bits;
    if (t.desc.readMode != cudaReadModeNormalizedFloat) return float(value);
    const float most = float((1ll << (is_signed ? bits - 1 : bits)) - 1);
    const float normalized = float(value) / most;
    return normalized < -1.0f ? -1.0f : normalized;
}

// The texel that an address mode means; -1 for the border.
int address(int i, int size, cudaTextureAddressMode mode, bool normalized) {
    if (i >= 0 && i < size) return i;
    if (normalized && mode == cudaAddressModeWrap) return ((i % size) + size) % size;
    if (normalized && mode == cudaAddressModeMirror) {
        const int k = ((i % (2 * size)) + 2 * size) % (2 * size);
        return k < size ? k : 2 * size - 1 - k;
    }
    if (mode == cudaAddressModeBorder) return -1;
    return i < 0 ? 0 : size - 1;
}

// Coordinates in the texels' own unit.
void fetch(const Texture& t, int dimensions, const float* at, int layer, void* out,
           const void* pc) {
    const bool linear = t.desc.filterMode == cudaFilterModeLinear && t.as_floats();
    int low[3] = {0, 0, 0};
    float weight[3] = {0, 0, 0};
    for (int d = 0; d < dimensions; ++d) {
        const float x = linear ? at[d] - 0.5f : at[d];
        const float whole = std::floor(x);
        low[d] = whole > 1e9f ? 1000000000 : whole < -1e9f ? -1000000000 : int(whole);
        weight[d] = linear ? std::rint((x - whole) * 256.0f) / 256.0f : 0.0f;  // 8 bits, as a GPU
    }
    float sums[4] = {0, 0, 0, 0};
    for (int corner = 0; corner < (linear ? 1 << dimensions : 1); ++corner) {
        float share = 1.0f;
        int texel[3] = {0, 0, 0};
        bool border = false;
        for (int d = 0; d < dimensions; ++d) {
            const bool high = corner >> d & 1;
            if (linear) share *= high ? weight[d] : 1.0f - weight[d];
            texel[d] = address(low[d] + high, t.size[d], t.desc.addressMode[d],
                               t.desc.normalizedCoords != 0);
            border |= texel[d] < 0;
        }
        if (share == 0.0f) continue;
        if (t.layered) {
            const int last = dimensions == 1 && t.size[2] == 1 ? 1 : 2;
            texel[last] = layer < 0 ? 0 : layer < t.size[last] ? layer : t.size[last] - 1;
        }
        if (!border) note_load(t, t.texel(texel), pc);
        if (!t.as_floats()) {
            if (border) memset(out, 0, t.element);
            else memcpy(out, t.texel(texel), t.element);
            return;
        }
        for (int c = 0; c < t.channels; ++c)
            sums[c] += share * (border ? t.desc.borderColor[c] : channel(t, t.texel(texel), c));
    }
    memcpy(out, sums, sizeof sums);
}

const Texture& of(unsigned long long handle) { return *reinterpret_cast<const Texture*>(handle); }

}  // namespace

extern "C" {

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* texture, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* desc, const cudaResourceViewDesc*) {
    Texture made{};
    if (!fill(made, *resource)) return result(cudaErrorInvalidValue);
    made.desc = *desc;
    if (desc->filterMode == cudaFilterModeLinear && !made.as_floats())
        return result(cudaErrorInvalidFilterSetting);
    *texture = reinterpret_cast<unsigned long long>(new Texture(made));
    ++objects;
    return result(cudaSuccess);
}
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture) {
    delete &of(texture);
    --objects;
    return result(cudaSuccess);
}
cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* desc, cudaTextureObject_t texture) {
    *desc = of(texture).resource;
    return result(cudaSuccess);
}
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* surface,
                                    const cudaResourceDesc* resource) {
    cudaTextureDesc plain{};
    return cudaCreateTextureObject(surface, resource, &plain, nullptr);
}
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surface) {
    return cudaDestroyTextureObject(surface);
}

void emu_fetch(cudaTextureObject_t texture, int dimensions, float x, float y, float z, int layer,
               void* out) {
    const Texture& t = of(texture);
    float at[3] = {x, y, z};
    if (t.desc.normalizedCoords)
        for (int d = 0; d < dimensions; ++d) at[d] *= float(t.size[d]);
    fetch(t, dimensions, at, layer, out, EMU_CALLER);
}
void emu_fetch_cube(cudaTextureObject_t texture, float x, float y, float z, void* out) {
    const Texture& t = of(texture);
    const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
    float major, s, v;
    int face;
    if (ax >= ay && ax >= az) major = ax, face = x < 0, s = x < 0 ? z : -z, v = -y;
    else if (ay >= az) major = ay, face = 2 + (y < 0), s = x, v = y < 0 ? -z : z;
    else major = az, face = 4 + (z < 0), s = z < 0 ? -x : x, v = -y;
    const float at[3] = {(s / major + 1.0f) / 2.0f * float(t.size[0]),
                         (v / major + 1.0f) / 2.0f * float(t.size[1]), 0.0f};
    fetch(t, 2, at, face, out, EMU_CALLER);
}
void emu_fetch_linear(cudaTextureObject_t texture, int index, void* out) {
    const Texture& t = of(texture);
    memset(out, 0, 16);
    if (index < 0 || index >= t.size[0]) return;
    const char* texel = t.data + size_t(index) * t.element;
    note_load(t, texel, EMU_CALLER);
    if (!t.as_floats()) {
        memcpy(out, texel, t.element);
        return;
    }
    float values[4] = {};
    for (int c = 0; c < t.channels; ++c) values[c] = channel(t, texel, c);
    memcpy(out, values, sizeof values);
}
void* emu_surface(cudaSurfaceObject_t surface, int x, int y, int z, size_t bytes,
                  cudaSurfaceBoundaryMode mode) {
    const Texture& t = of(surface);
    int at[3] = {x, y, z};
    const int most[3] = {t.size[0] * int(t.element) - int(bytes), t.size[1] - 1, t.size[2] - 1};
    for (int d = 0; d < 3; ++d) {
        if (at[d] >= 0 && at[d] <= most[d]) continue;
        if (mode == cudaBoundaryModeZero) return nullptr;
        if (mode == cudaBoundaryModeTrap) emu_trap(EmuSite{});
        at[d] = at[d] < 0 ? 0 : most[d];
    }
    return const_cast<char*>(t.data) +
           (size_t(at[2]) * size_t(t.size[1]) + size_t(at[1])) * t.pitch + size_t(at[0]);
}

}  // extern "C"
