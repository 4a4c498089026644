// What the engine that copies tiles is told of a matrix: where it lies, how large its tiles are,
// and how a tile's 16-byte pieces change places in shared memory, so that columns meet all banks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../include/cuda.h"

namespace emu {

struct TileMap {  // in a CUtensorMap
    uint64_t mark;
    char* matrix;
    uint64_t rows, cols, pitch;  // elements; bytes from one row to the next
    uint32_t tile_rows, tile_cols, element, swizzle;
    uint32_t rounds;  // whether copies to shared memory round floats to TF32

    size_t row_bytes() const { return tile_cols * element; }
    size_t bytes() const { return tile_rows * row_bytes(); }
};
static_assert(sizeof(TileMap) <= sizeof(CUtensorMap), "one holds the other");

// The map that was encoded; null where none was.
const TileMap* tile_map(const CUtensorMap* map);

// Where an address lies for a swizzle of CUtensorMapSwizzle: bits 4 to 6 at most are turned by
// bits 7 to 9.
inline uint64_t swizzled(uint64_t address, uint32_t swizzle) {
    constexpr uint64_t turned[] = {0, 0x10, 0x30, 0x70};
    return address ^ (address >> 3 & turned[swizzle]);
}
inline size_t swizzle_repeats(uint32_t swizzle) {  // bytes; tiles begin at a multiple
    return swizzle ? size_t(128) << swizzle : 128;
}

// What load_bytes() brings, as if it were a tile; without a mark.
inline TileMap row_of_bytes(const void* from, int bytes) {
    const uint32_t pieces = uint32_t(bytes / 16);
    return {0, static_cast<char*>(const_cast<void*>(from)), pieces, 16, 16, pieces, 16, 1, 0, 0};
}

// The part of a tile's row that is in the matrix: columns [first, first + count) of the tile.
struct Inside {
    uint32_t first, count;
    char* from;  // in the matrix
};
Inside inside(const TileMap& map, int col, int row);

// What the engine makes of a float's bits on their way: the nearest with 10 bits of fraction, of
// two the even one, and one NaN for all. Subnormals stay, and what is too large becomes infinite.
// Asked of a card by benchmarks/probe_tile_floats.cu.
inline uint32_t rounded_to_tf32(uint32_t bits) {
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fffe000;
    return (bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000;
}

void fetch_tile(const TileMap& map, int col, int row, char* tile);
void store_tile(const TileMap& map, int col, int row, const char* tile);

}  // namespace emu
