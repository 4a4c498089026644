// Barriers that lie in memory, and teams of some of a block's warps: who arrives counts down, and
// who waits goes on when all have arrived.
//
// While watched, a phase that ends orders all threads of the block: what only some of them have
// agreed on may hide a race of the others, and never makes one up.
#include "block.h"
#include "watch.h"

namespace emu {

unsigned Core::arrive(EmuArrivals* arrivals, unsigned count, bool drops) {
    const unsigned phase = arrivals->phase;
    if (drops) --arrivals->expected;
    arrivals->pending -= count;
    if (arrivals->pending) return phase;
    arrivals->pending = arrivals->expected;
    ++arrivals->phase;
    wake(Waits::kArrivals, arrivals);
    if (watching()) {
        watch_warp_end();
        watch_phase();
        watch_thread(this, index(current));
    }
    return phase;
}

void Core::await(const EmuArrivals* arrivals, unsigned phase, EmuSite site) {
    if (arrivals->phase != phase) return;
    block_on(Waits::kArrivals, arrivals, site);
}

EmuArrivals* Core::team(unsigned first, unsigned count) {
    auto [it, fresh] = teams_.try_emplace({first, count});
    if (fresh) it->second.arrivals = EmuArrivals{count, count, 0};
    return &it->second.arrivals;
}

void* Core::team_memory(unsigned first, unsigned count, size_t bytes) {
    team(first, count);
    std::vector<char>& memory = teams_[{first, count}].memory;
    if (memory.size() < bytes) memory.resize(bytes);
    return memory.data();
}

}  // namespace emu

using emu::core;

extern "C" {

void emu_arrivals_init(EmuArrivals* arrivals, unsigned expected) {
    *arrivals = EmuArrivals{expected, expected, 0};
}
unsigned emu_arrive(EmuArrivals* arrivals, unsigned count, int drops) {
    return core()->arrive(arrivals, count, drops);
}
void emu_await(EmuArrivals* arrivals, unsigned phase, EmuSite site) {
    core()->current->pc = EMU_CALLER;
    core()->await(arrivals, phase, site);
}
int emu_has_passed(EmuArrivals* arrivals, unsigned phase) {
    core()->current->pc = EMU_CALLER;
    if (arrivals->phase == phase) core()->pause(true);
    return arrivals->phase != phase;
}
void emu_team_barrier(unsigned first, unsigned count, EmuSite site) {
    core()->current->pc = EMU_CALLER;
    EmuArrivals* arrivals = core()->team(first, count);
    const unsigned phase = core()->arrive(arrivals, 1, false);
    core()->await(arrivals, phase, site);
}
void* emu_team_memory(unsigned first, unsigned count, size_t bytes) {
    return core()->team_memory(first, count, bytes);
}

}  // extern "C"
