// Watching: in an instrumented build the compiler calls us before every load and store.
#pragma once

#include <cstdint>

namespace emu {

enum class Space : uint8_t { kGlobal, kShared };

struct Access {  // one load or store of one thread; 32 bytes, read by utils/tracing.py
    uint64_t address;  // global: the address itself; shared: the offset in the block's arena
    uint64_t pc;
    uint32_t block, thread;  // linear
    uint32_t phase;          // block barriers passed by the thread
    uint16_t size;           // bytes
    uint8_t write;           // 0 load, 1 store, 2 atomic
    Space space;
};
static_assert(sizeof(Access) == 32, "utils/tracing.py reads these");

bool tracing();  // a traced launch runs its blocks in order, on one core

}  // namespace emu
