// Copies of whole tiles: begun here, and done where somebody waits for them.
#include "../include/emulator/errors.h"
#include "../include/emulator/hopper.h"
#include "block.h"
#include "block_work.h"
#include "hazards.h"
#include "traffic.h"
#include "under_way.h"

namespace emu {
namespace {

const TileMap& check(Core& core, const CUtensorMap* map, EmuSite site) {
    if (const TileMap* known = tile_map(map)) return *known;
    core.fail(cudaErrorIllegalAddress, hazard::invalid_map, site, core.current->pc,
              "this is no map of a matrix: make_map() makes one, of a matrix that begins at a "
              "multiple of 16 bytes, as each of its rows does, for tiles of at most 256 rows");
}

void check_tile(Core& core, const void* tile, const TileMap& map, Kind kind, EmuSite site) {
    if (core.shared.offset(tile) == SharedMemory::kElsewhere)
        core.fail(cudaErrorIllegalAddress, hazard::illegal_address, site, core.current->pc,
                  "this tile does not lie in shared memory");
    const size_t repeats = map.mark ? swizzle_repeats(map.swizzle) : 16;
    if (watching()) watch_alignment(tile, repeats, kind, core.current->pc);
}

// What the tile holds of the matrix is read or written by the running thread.
void watch_matrix(const TileMap& map, int col, int row, Kind kind, const void* pc) {
    for (uint32_t r = 0; r < map.tile_rows; ++r)
        if (const Inside part = inside(map, col, row + int(r)); part.count) {
            watch_uncounted(part.from, part.count * map.element, kind, pc);
            if (kind == kLoad) watch_unfenced(part.from, part.count * map.element, pc);
        }
}

void finish(TileStores::Store& store) {
    if (running.core) {
        watch_matrix(store.map, store.col, store.row, kStore, store.pc);
        watch_async_fence();  // it came by the way that copies come by
    }
    store_tile(store.map, store.col, store.row, store.tile);
    end_operation(store.operation);
}

}  // namespace

void end_stores(Core& core) {
    auto& stores = core.work().stores();
    for (size_t thread = 0; thread < stores.size(); ++thread)
        for (TileStores::Store& store : stores[thread].under_way) {
            const bool committed = store.group != stores[thread].group;
            if (store.operation)
                tell_hazard(core, committed ? hazard::missing_wait : hazard::missing_commit,
                            instruction(store.operation->instruction), kLoad, store.tile, nullptr,
                            committed ? "the block has ended, and nobody has waited for this store"
                                      : "the block has ended, and this store was never committed",
                            int(thread));
            finish(store);
        }
}

}  // namespace emu

using namespace emu;

extern "C" void emu_check_map(const CUtensorMap* map, EmuSite site) {
    core()->current->pc = EMU_CALLER;
    check(*core(), map, site);
}

// Into the block of each bit of `blocks`, by rank, at the same places.
static void load(Core& c, char* tile, const TileMap& map, int col, int row, char* barrier,
                 unsigned blocks, EmuSite site) {
    const void* pc = c.current->pc;
    check_tile(c, tile, map, kStore, site);
    if (running.core) watch_matrix(map, col, row, kLoad, pc);
    for (int rank = 0; rank < 16; ++rank) {
        if (!(blocks >> rank & 1)) continue;
        Core& to = c.peer(rank, site);
        char* there = to.shared.at(c.shared.offset(barrier));
        auto& barriers = to.work().barriers;
        auto it = barriers.find(there);
        if (it == barriers.end())
            c.fail(cudaErrorLaunchFailure, hazard::invalid_barrier, site, pc,
                   "nobody has initialised this barrier");
        TileCopy copy{map, col, row, to.shared.at(c.shared.offset(tile)), 0, 0, nullptr, pc};
        if (running.core && &to == &c) {
            watch_uncounted(barrier, 8, kAtomic, pc);
            copy.party = next_party(&copy.moment);
            copy.operation =
                begin_operation(copy.party, copy.moment, kStore, pc, {{tile, map.bytes()}});
            if (copy.operation) copy.operation->committed = true;
        }
        it->second.copies.push_back(copy);
    }
}

extern "C" void emu_load_tile(void* tile, const CUtensorMap* map, int col, int row, void* barrier,
                              EmuSite site) {
    Core& c = *core();
    c.current->pc = EMU_CALLER;
    load(c, static_cast<char*>(tile), check(c, map, site), col, row, static_cast<char*>(barrier),
         1u << c.cluster_rank(), site);
}

// As a tile of the matrix whose rows are 16 bytes, and follow each other.
extern "C" void emu_load_bytes(void* to, const void* from, int bytes, void* barrier, EmuSite site) {
    Core& c = *core();
    c.current->pc = EMU_CALLER;
    if (bytes <= 0 || bytes % 16 || uint64_t(from) % 16 || uint64_t(to) % 16)
        c.fail(cudaErrorLaunchFailure, hazard::misaligned_tile, site, c.current->pc,
               "%d bytes from %p to %p: all three are to be multiples of 16", bytes, from, to);
    const TileMap map = row_of_bytes(from, bytes);
    load(c, static_cast<char*>(to), map, 0, 0, static_cast<char*>(barrier), 1u << c.cluster_rank(),
         site);
}

extern "C" void emu_load_tile_multicast(void* tile, const CUtensorMap* map, int col, int row,
                                        void* barrier, unsigned blocks, EmuSite site) {
    Core& c = *core();
    c.current->pc = EMU_CALLER;
    load(c, static_cast<char*>(tile), check(c, map, site), col, row, static_cast<char*>(barrier),
         blocks, site);
}

extern "C" void emu_store_tile(const CUtensorMap* described, const void* tile, int col, int row,
                               EmuSite site) {
    Core& c = *core();
    const void* pc = c.current->pc = EMU_CALLER;
    const TileMap& map = check(c, described, site);
    check_tile(c, tile, map, kLoad, site);
    TileStores& mine = c.work().stores_of(c.current_index());
    AsyncOperation* operation = nullptr;
    if (running.core)
        operation = begin_operation(party_of(Does::kStores, c.current_index()), mine.group, kLoad,
                                    pc, {{tile, map.bytes()}});
    mine.under_way.push_back(
        {map, col, row, static_cast<const char*>(tile), mine.group, pc, operation});
}

extern "C" void emu_fence_async_global() { watch_async_fence(); }

extern "C" void emu_commit_stores() {
    TileStores& mine = core()->work().stores_of(core()->current_index());
    for (TileStores::Store& store : mine.under_way)
        if (store.operation) store.operation->committed = true;
    ++mine.group;
}

extern "C" void emu_wait_for_stores(int most, EmuSite) {
    Core& c = *core();
    TileStores& mine = c.work().stores_of(c.current_index());
    const int last = mine.group - 1 - most;
    for (; !mine.under_way.empty() && mine.under_way.front().group <= last;
         mine.under_way.pop_front())
        finish(mine.under_way.front());
    if (!running.core) return;
    for (TileStores::Store& store : mine.under_way)
        if (store.operation && !store.operation->committed) store.operation->waited_past = true;
    if (last > 0)
        learn(c.current_index(), party_of(Does::kStores, c.current_index()), uint16_t(last));
    watch_acquire();
}
