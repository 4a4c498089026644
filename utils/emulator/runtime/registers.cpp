// The registers that products hold, by thread.
#include "registers.h"

#include <vector>

#include "block.h"
#include "hazards.h"
#include "traffic.h"

namespace emu {
namespace {

struct Held {
    const char *first, *end;
    const void* pc;  // of the product
    bool held, waited_past;
};
std::vector<Held> known[kMaxThreads];

}  // namespace

bool any_registers = false;

void registers_block() {
    if (!any_registers) return;
    for (auto& of_thread : known) of_thread.clear();
    any_registers = false;
}

void hold_registers(int thread, const void* first, size_t count, const void* pc) {
    if (!watching()) return;
    any_registers = true;
    const char* begin = static_cast<const char*>(first);
    for (Held& h : known[thread])
        if (h.first == begin) return void(h = {begin, begin + 4 * count, pc, true, false});
    known[thread].push_back({begin, begin + 4 * count, pc, true, false});
}

void release_registers(int thread, const void* first) {
    for (Held& h : known[thread])
        if (h.first == static_cast<const char*>(first)) h.held = false;
}

void neglect_registers(int warp_thread) {
    for (int thread = warp_thread; thread < warp_thread + 32; ++thread)
        for (Held& h : known[thread]) h.waited_past |= h.held;
}

void watch_register(Core& core, const void* address, size_t size, Kind kind, const void* pc) {
    const char* at = static_cast<const char*>(address);
    const int thread = core.current_index();
    for (const Held& h : known[thread]) {
        if (at + size <= h.first || at >= h.end) continue;
        if (!h.held) return touch_registers(core, thread, h.first);
        const Conflict product{uint16_t(thread + 1), instruction_at(h.pc, kShared, kLoad, 16).id, 0,
                               kStore};
        const HazardKind& row = h.waited_past  ? hazard::missing_commit
                                : writes(kind) ? hazard::early_write
                                               : hazard::early_read_of_registers;
        tell_hazard(core, row, instruction_at(pc, kGlobal, kind, size), kind, address, &product,
                    "these registers belong to a product that is under way");
        return;
    }
}

}  // namespace emu
