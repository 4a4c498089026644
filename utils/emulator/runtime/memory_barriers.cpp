// mbarriers, the tiles that count at them, and barriers of some warps.
#include "memory_barriers.h"

#include <string>

#include "../include/emulator/errors.h"
#include "../include/emulator/hopper.h"
#include "block.h"
#include "block_work.h"
#include "hazards.h"
#include "traffic.h"
#include "under_way.h"

namespace emu {
namespace {

void refresh(Clock& clock, uint32_t& epoch) {  // a block barrier has put all in order
    if (epoch == order_epoch()) return;
    epoch = order_epoch();
    clock.moments.clear();
}
void refresh(MemoryBarrier& b) {
    if (b.epoch == order_epoch()) return;
    b.gathered.moments.clear();
    refresh(b.released, b.epoch);
}

void land(TileCopy& copy) {
    fetch_tile(copy.map, copy.col, copy.row, copy.tile);
    end_operation(copy.operation);
}

void learn_of(MemoryBarrier& b, const TileCopy& copy) {
    if (copy.operation) b.gathered.note(copy.party, copy.moment);
}

// Of a copy that brings more than its barrier was told to expect.
void tell_excess(Core& core, MemoryBarrier& b, const TileCopy& copy) {
    if (!copy.operation || b.over) return;
    b.over = true;
    const std::string text = "this copy brings " + std::to_string(copy.map.bytes()) +
                             " bytes, and of those that its barrier was told to expect " +
                             std::to_string(b.bytes) + " are left: who waits does not wait for it";
    Conflict other{};
    if (b.announced)
        other = {b.announcer, instruction_at(b.announced, kShared, kAtomic, 8).id, 0, kAtomic};
    tell_hazard(core, hazard::byte_count, instruction(copy.operation->instruction), kStore,
                copy.tile, b.announced ? &other : nullptr, text.c_str(),
                copy.operation->thread - 1);
}

void end_phase(Core& core, const void* address, MemoryBarrier& b) {
    while (!b.copies.empty()) {  // nobody has been told of these
        TileCopy& copy = b.copies.front();
        tell_excess(core, b, copy);
        learn_of(b, copy);
        b.late.push_back(std::move(copy));
        b.copies.pop_front();
    }
    ++b.phase;
    b.pending = b.expected;
    b.bytes = 0;
    b.released.join(b.gathered);
    b.waiting = 0;
    core.wake(Waits::kMemoryBarrier, address);
}

// Ends the phase, if all have arrived, and lets tiles land for that.
bool try_end(Core& core, const void* address, MemoryBarrier& b) {
    if (b.pending) return false;
    for (; !b.late.empty(); b.late.pop_front()) land(b.late.front());
    while (b.bytes > 0 && !b.copies.empty()) {
        TileCopy& copy = b.copies.front();
        if (int64_t(copy.map.bytes()) > b.bytes) break;
        land(copy);
        b.bytes -= int64_t(copy.map.bytes());
        learn_of(b, copy);
        b.copies.pop_front();
    }
    if (b.bytes > 0 && b.copies.empty()) return false;
    end_phase(core, address, b);
    return true;
}

// In a block, for a thread that runs, of this block or of another one.
MemoryBarrier& find(Core& home, Core& core, const void* address, EmuSite site) {
    auto& barriers = home.work().barriers;
    auto it = barriers.find(address);
    if (it == barriers.end())
        core.fail(cudaErrorLaunchFailure, hazard::invalid_barrier, site, core.current->pc,
                  "nobody has initialised this barrier");
    refresh(it->second);
    return it->second;
}

}  // namespace

bool advance_barriers(Core& core) {
    bool any = false;
    for (auto& [address, b] : core.work().barriers)
        if (b.waiting) refresh(b), any |= try_end(core, address, b);
    return any;
}

void begin_incoming(Core& core) {
    if (!running.core) return;
    for (auto& [address, b] : core.work().barriers)
        for (TileCopy& copy : b.copies) {
            if (copy.operation) continue;
            copy.party = next_party(&copy.moment);
            copy.operation = begin_operation(copy.party, copy.moment, kStore, copy.pc,
                                             {{copy.tile, copy.map.bytes()}});
            if (copy.operation) copy.operation->committed = true;
        }
}

void end_work(Core& core) {
    for (auto& [address, b] : core.work().barriers)
        for (const TileCopy& copy : b.copies)
            if (copy.operation)
                tell_hazard(core, hazard::missing_wait, instruction(copy.operation->instruction),
                            kStore, copy.tile, nullptr,
                            "the block has ended, and nobody has waited for this copy",
                            copy.operation->thread - 1);
    end_stores(core);
    end_products(core);
    end_registers(core);
}

}  // namespace emu

using namespace emu;

extern "C" void emu_barrier_init(void* barrier, int arrivals, EmuSite site) {
    Core& c = *core();
    c.current->pc = EMU_CALLER;
    if (c.shared.offset(barrier) == SharedMemory::kElsewhere)
        c.fail(cudaErrorIllegalAddress, hazard::illegal_address, site, c.current->pc,
               "this barrier does not lie in shared memory");
    if (arrivals < 1 || arrivals > (1 << 20) - 1)
        c.fail(cudaErrorLaunchFailure, hazard::invalid_barrier, site, c.current->pc,
               "a barrier of %d arrivals: 1 to 1,048,575 are possible", arrivals);
    if (watching()) watch_uncounted(barrier, 8, kStore, c.current->pc);
    MemoryBarrier& b = c.work().barriers[barrier];
    if (b.waiting || !b.copies.empty() || b.pending != b.expected)
        c.fail(cudaErrorLaunchFailure, hazard::invalid_barrier, site, c.current->pc,
               "this barrier is initialised again while it is in use: %d of %d arrivals have come, "
               "%d thread%s wait, %zu cop%s under way",
               b.expected - b.pending, b.expected, b.waiting, b.waiting == 1 ? "" : "s",
               b.copies.size(), b.copies.size() == 1 ? "y is" : "ies are");
    b = MemoryBarrier{};
    b.expected = b.pending = arrivals;
}

// By a thread of this block or of another one, `c`.
static void arrive(Core& c, Core& home, void* barrier, int bytes, EmuSite site) {
    MemoryBarrier& b = find(home, c, barrier, site);
    if (running.core) {
        if (&c == &home) {
            watch_uncounted(barrier, 8, kAtomic, c.current->pc);
            b.gathered.join(knowledge(running.me));
        }
        watch_release();
    }
    if (!b.pending && !try_end(home, barrier, b))
        c.fail(cudaErrorLaunchFailure, hazard::invalid_barrier, site, c.current->pc,
               "one arrival more than the barrier's %d, and its phase has not ended: %lld bytes "
               "have not come",
               b.expected, (long long)b.bytes);
    if (bytes) {
        b.bytes += bytes;
        b.announced = c.current->pc;
        b.announcer = uint16_t(c.current_index() + 1);
    }
    // With tiles under way it ends when somebody waits.
    if (!--b.pending && b.bytes <= 0) try_end(home, barrier, b);
}

extern "C" void emu_barrier_arrive(void* barrier, int bytes, EmuSite site) {
    Core& c = *core();
    c.current->pc = EMU_CALLER;
    arrive(c, c, barrier, bytes, site);
}

extern "C" void emu_barrier_arrive_at(void* barrier, int rank, EmuSite site) {
    Core& c = *core();
    c.current->pc = EMU_CALLER;
    Core& home = c.peer(rank, site);
    arrive(c, home, home.shared.at(c.shared.offset(barrier)), 0, site);
}

extern "C" void emu_barrier_wait(void* barrier, int parity, EmuSite site) {
    Core& c = *core();
    c.current->pc = EMU_CALLER;
    MemoryBarrier& b = find(c, c, barrier, site);
    if (parity != 0 && parity != 1)
        c.fail(cudaErrorLaunchFailure, hazard::invalid_barrier, site, c.current->pc,
               "a phase has parity 0 or 1, and not %d: take the number of the phase %% 2", parity);
    if (running.core) watch_uncounted(barrier, 8, kAtomic, c.current->pc);
    if (int(b.phase & 1) == parity) {
        ++b.waiting;
        c.block_on(Waits::kMemoryBarrier, barrier, site);
    }
    if (!running.core) return;
    refresh(b);
    learn(c.current_index(), b.released);
    watch_acquire();
}

extern "C" void emu_sync_some(int name, int threads, EmuSite site) {
    Core& c = *core();
    c.current->pc = EMU_CALLER;
    if (name < 0 || name > 15 || threads <= 0 || threads % 32 || threads > c.launch->threads)
        c.fail(cudaErrorLaunchFailure, hazard::invalid_barrier, site, c.current->pc,
               "barrier %d of %d threads: its name is 1 to 15, its threads are whole warps of the "
               "block's %d",
               name, threads, c.launch->threads);
    NamedBarrier& b = c.work().named[name];
    if (b.come && b.threads != threads)
        c.fail(cudaErrorLaunchFailure, hazard::invalid_barrier, site, c.current->pc,
               "barrier %d is one of %d threads here, and of %d for those who wait at it", name,
               threads, b.threads);
    b.threads = threads;
    if (running.core) {
        refresh(b.clock, b.epoch);
        b.clock.join(knowledge(running.me));
        watch_release();
    }
    if (++b.come == threads) {
        b.come = 0;
        c.wake(Waits::kNamedBarrier, &b);
    } else {
        c.block_on(Waits::kNamedBarrier, &b, site);
    }
    if (!running.core) return;
    refresh(b.clock, b.epoch);
    learn(c.current_index(), b.clock);
    watch_acquire();
}

extern "C" void emu_fence_async() { watch_tile_fence(); }
