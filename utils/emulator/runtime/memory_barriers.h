// Barriers in shared memory that count arrivals, and bytes that copies of tiles bring.
//
// A tile lands as late as can be: when no thread of the block can go on without it.
#pragma once

#include <cstdint>
#include <deque>

#include "order.h"
#include "tile_map.h"

namespace emu {

struct AsyncOperation;

struct TileCopy {  // under way, global -> shared memory
    TileMap map;
    int col, row;
    char* tile;
    uint16_t party, moment;
    AsyncOperation* operation;
    const void* pc;
};

struct MemoryBarrier {
    int expected = 0, pending = 0;  // arrivals of a phase; those that have not come
    int64_t bytes = 0;              // announced, and not come
    unsigned phase = 0;
    int waiting = 0;                  // threads
    bool over = false;                // more came than was announced: told
    const void* announced = nullptr;  // where bytes last were
    uint16_t announcer = 0;
    std::deque<TileCopy> copies;  // that count here
    std::deque<TileCopy> late;    // that came after their phase
    Clock gathered, released;     // by those that have arrived; when the last phase ended
    uint32_t epoch = 0;           // of these clocks
};

// A barrier of some warps, by number.
struct NamedBarrier {
    int threads = 0, come = 0;
    unsigned phase = 0;
    Clock clock;
    uint32_t epoch = 0;
};

}  // namespace emu
