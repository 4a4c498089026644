// Encoding of tile maps, and the copies that they describe.
#include "tile_map.h"

#include <algorithm>
#include <cstring>

namespace emu {
namespace {

constexpr uint64_t kMark = 0x656c6974'2070616d;

size_t bytes_of(CUtensorMapDataType type) {
    constexpr uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    return size_t(type) < sizeof bytes ? bytes[type] : 0;
}

bool rounds(CUtensorMapDataType type) {
    return type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 || type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

void round_to_tf32(char* line, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 4) {
        uint32_t bits;
        memcpy(&bits, line + at, 4);
        bits = rounded_to_tf32(bits);
        memcpy(line + at, &bits, 4);
    }
}

}  // namespace

const TileMap* tile_map(const CUtensorMap* map) {
    const TileMap* known = reinterpret_cast<const TileMap*>(map);
    return known->mark == kMark ? known : nullptr;
}

Inside inside(const TileMap& map, int col, int row) {
    if (row < 0 || uint64_t(row) >= map.rows) return {0, 0, nullptr};
    const int64_t first = std::max<int64_t>(0, -int64_t(col));
    const int64_t end = std::min<int64_t>(map.tile_cols, int64_t(map.cols) - col);
    if (end <= first) return {0, 0, nullptr};
    return {uint32_t(first), uint32_t(end - first),
            map.matrix + uint64_t(row) * map.pitch + uint64_t(col + first) * map.element};
}

void fetch_tile(const TileMap& map, int col, int row, char* tile) {
    const size_t bytes = map.row_bytes();
    alignas(16) char line[4096];
    for (uint32_t r = 0; r < map.tile_rows; ++r, tile += bytes) {
        memset(line, 0, bytes);
        const Inside part = inside(map, col, row + int(r));
        memcpy(line + part.first * map.element, part.from, part.count * map.element);
        if (map.rounds) round_to_tf32(line, bytes);
        for (size_t at = 0; at < bytes; at += 16)
            memcpy(reinterpret_cast<char*>(swizzled(uint64_t(tile + at), map.swizzle)), line + at,
                   std::min<size_t>(16, bytes - at));
    }
}

void store_tile(const TileMap& map, int col, int row, const char* tile) {
    const size_t bytes = map.row_bytes();
    alignas(16) char line[4096];
    for (uint32_t r = 0; r < map.tile_rows; ++r, tile += bytes) {
        for (size_t at = 0; at < bytes; at += 16)
            memcpy(line + at,
                   reinterpret_cast<const char*>(swizzled(uint64_t(tile + at), map.swizzle)),
                   std::min<size_t>(16, bytes - at));
        const Inside part = inside(map, col, row + int(r));
        if (part.count)
            memcpy(part.from, line + part.first * map.element, part.count * map.element);
    }
}

}  // namespace emu

using namespace emu;

extern "C" {

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                void* address, const cuuint64_t* shape, const cuuint64_t* strides,
                                const cuuint32_t* box, const cuuint32_t* steps,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
    constexpr uint64_t kMost = uint64_t(1) << 32, kLongest = uint64_t(1) << 40;
    const size_t element = bytes_of(type);
    if (rank != 2 || interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
        fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE || steps[0] != 1 || steps[1] != 1)
        return CUDA_ERROR_NOT_SUPPORTED;
    const uint64_t row_bytes = box[0] * element;
    const uint64_t widest = swizzle ? uint64_t(16) << swizzle : 4096;
    if (!element || uint64_t(address) % 16 || !address || strides[0] % 16 ||
        strides[0] >= kLongest || !shape[0] || !shape[1] || shape[0] > kMost || shape[1] > kMost ||
        !box[0] || !box[1] || box[0] > 256 || box[1] > 256 || row_bytes % 16 ||
        row_bytes > widest || size_t(swizzle) > CU_TENSOR_MAP_SWIZZLE_128B)
        return CUDA_ERROR_INVALID_VALUE;
    *map = CUtensorMap{};
    const TileMap made{
        kMark,  static_cast<char*>(address), shape[1],          shape[0],    strides[0], box[1],
        box[0], uint32_t(element),           uint32_t(swizzle), rounds(type)};
    memcpy(static_cast<void*>(map), &made, sizeof made);
    return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
    const bool known = !strcmp(symbol, "cuTensorMapEncodeTiled");
    *function = known ? reinterpret_cast<void*>(&cuTensorMapEncodeTiled) : nullptr;
    if (result) *result = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}

}  // extern "C"
