// The record of every load and store of a traced run, for utils/watch/trace.py. It judges nothing.
#pragma once

#include <cstdint>

#include "shadow.h"

namespace emu {

struct Access {        // one load or store of one thread; 32 bytes, read by utils/watch/trace.py
    uint64_t address;  // global: the address itself; shared: the offset in the block's arena
    uint64_t pc;
    uint32_t block, thread;  // linear
    uint32_t phase;          // block barriers passed by the thread
    uint16_t size;           // bytes
    uint8_t write;           // 0 load, 1 store, 2 atomic, 3 none: a basic block begins
    Space space;
};
static_assert(sizeof(Access) == 32, "utils/watch/trace.py reads these");

struct TracedLaunch {  // one launch of a traced call; 104 bytes
    char kernel[64];
    uint32_t grid[3], block[3];
    uint64_t first;   // its first access
    uint64_t shared;  // bytes of dynamic shared memory
};
static_assert(sizeof(TracedLaunch) == 104, "utils/watch/trace.py reads these");

struct Launch;
void trace_launch(const Launch& launch);
bool tracing();  // a traced launch runs its blocks in order, on one core
// Notes an access of the running thread, where a record is kept.
void trace_access(const void* address, size_t size, Kind kind, const void* pc);

}  // namespace emu
