// The tiles that a thread has begun to store, shared -> global memory, in groups that it waits for.
#pragma once

#include <cstdint>
#include <deque>

#include "tile_map.h"

namespace emu {

struct AsyncOperation;

struct TileStores {
    struct Store {
        TileMap map;
        int col, row;
        const char* tile;
        uint16_t group;
        const void* pc;
        AsyncOperation* operation;
    };
    std::deque<Store> under_way;
    uint16_t group = 1;  // that is being made up
};

}  // namespace emu
