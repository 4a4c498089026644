// Waits for the value of a store that came second, and tells of the race that it is.
#include "equal_stores.h"

#include <cstring>
#include <string>
#include <utility>

#include "block.h"
#include "hazards.h"

namespace emu {
namespace {

struct MaybeBenign {
    Core* core = nullptr;  // null: there is none
    const Instruction* in;
    const void* address;
    Conflict other;
    int thread;
    const char* first;
    std::string before;  // the bytes from `first` on
} pending;

}  // namespace

void maybe_benign_race(Core& core, const Instruction& in, const void* address,
                       const Conflict& other, const char* first, size_t bytes) {
    pending.core = &core;
    pending.in = &in;
    pending.address = address;
    pending.other = other;
    pending.thread = core.current_index();
    pending.first = first;
    pending.before.assign(first, bytes);
}

void settle_benign_race() {
    if (!pending.core) return;
    const MaybeBenign& d = pending;
    Core& core = *std::exchange(pending.core, nullptr);
    const bool equal = !memcmp(d.first, d.before.data(), d.before.size());
    // Lanes of a warp that store one value by one instruction: CUDA allows it.
    const bool one_warp = !d.other.block && warp_of(d.other.id) == unsigned(d.thread) / 32;
    if (equal && one_warp && d.other.instruction == d.in->id) return;
    const HazardKind& kind =
        equal ? hazard::race_of_same_value : race_between(d.in->space, kStore, d.other);
    tell_hazard(core, kind, *d.in, kStore, d.address, &d.other, nullptr, d.thread);
}

}  // namespace emu
