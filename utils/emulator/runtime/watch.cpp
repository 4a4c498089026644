// Every access of a watched launch, held against what other threads did to the same word: races,
// accesses out of bounds, reads of what nobody wrote. hazards.cpp tells of them, traffic.cpp counts
// what they cost.
#include "watch.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absent_lanes.h"
#include "block.h"
#include "coverage.h"
#include "equal_stores.h"
#include "fences.h"
#include "hazards.h"
#include "heap.h"
#include "memory.h"
#include "order.h"
#include "reach.h"
#include "registers.h"
#include "streams.h"
#include "traffic.h"
#include "under_way.h"

namespace emu {

Running running;
bool watched = false;

namespace {

Heap* device_memory = nullptr;

std::map<const SharedMemory*, std::unique_ptr<Shadow<Cell>>> shared_shadows;
Shadow<Cell>* shared_shadow = nullptr;  // of the running block's shared memory
std::map<const Allocation*, std::unique_ptr<Shadow<Word>>> global_shadows;
std::vector<uint16_t> moments;

uint32_t last_serial = 0, block_serial = 0, phase_serial = 0;
uint16_t now[kMaxThreads];
// What a block has done so far, by its serial number: those that rest go on later.
struct Share {
    uint64_t loaded = 0;  // bytes of global memory
    uint32_t steps[kMaxThreads] = {};
};
std::map<uint32_t, std::unique_ptr<Share>> shares;
std::vector<std::unique_ptr<Share>> spare_shares;
Share* share_of_block = nullptr;  // of the running one

std::unique_ptr<Share> new_share() {
    if (spare_shares.empty()) return std::make_unique<Share>();
    std::unique_ptr<Share> share = std::move(spare_shares.back());
    spare_shares.pop_back();
    *share = Share{};
    return share;
}

uint16_t clocks[kMaxThreads][32];
bool synced[kMaxThreads / 32];
bool any_synced = false, uncounted = false;
std::map<std::pair<uint32_t, uint16_t>, uint32_t> async_fences;  // the last phase, by block, thread
uint32_t tile_fences = 0, last_tile_fence[kMaxThreads];          // counted over all threads
uint32_t tile_stores = 0;

// The allocation that holds the access, and its shadow, in in.allocation and in.shadow.
bool find_allocation(Instruction& in, const void* address, size_t size) {
    if (in.allocation && in.allocation->holds(address, size) && !in.allocation->freed) return true;
    Allocation* a = heap().find(address);
    if (!a || !a->holds(address, size)) return false;
    const Allocation* whole = a->arena ? a->arena : a;
    auto& shadow = global_shadows[whole];
    if (!shadow) shadow = std::make_unique<Shadow<Word>>(whole->bytes);
    in.allocation = a;
    in.shadow = shadow.get();
    in.shadow_first = whole->first;
    in.global = a->first;
    in.global_bytes = a->all_written && !a->lent && !a->arena ? a->bytes / 4 * 4 : 0;
    in.words = shadow->at(0);
    in.coverage = &coverage_of(*a);
    return true;
}

bool was_written(const Allocation& a, size_t offset, size_t size) {
    if (a.all_written) return true;
    for (size_t i = offset; i < offset + size; ++i)
        if (!(a.written[i / 64] >> i % 64 & 1)) return false;
    return true;
}

}  // namespace

static bool behind(const Allocation& a, const void* address) {
    ptrdiff_t distance = static_cast<const char*>(address) - (a.first + a.bytes);
    return distance >= 0 && distance < 4096;
}

bool scope_of_block = false;

static Accessor accessor(const Instruction& in, Kind kind) {
    Accessor me = running.me;
    me.instruction = in.id;
    me.loads = kind == kLoad;
    me.of_block = scope_of_block;
    return me;
}

// The races of one access, of whatever part of it.
struct Races {
    bool stores = false, others = false;  // of a store with a store; others
    Conflict store, other;
    size_t first = 0, end = 0;  // the bytes that were stored to before

    void note(const Conflict& c, Kind kind, size_t offset, size_t bytes) {
        if (kind == kStore && c.kind == kStore) {
            if (!stores) first = offset;
            stores = true, store = c, end = offset + bytes;
        } else {
            others = true, other = c;
        }
    }
    bool any() const { return stores || others; }
    // With what a thread has begun and not waited for, on either side.
    bool tell_async(const Core& core, const Instruction& in, const Accessor& me, Kind kind,
                    const void* address) const {
        Conflict c = others ? other : store;
        if (is_thread(me.id) && is_thread(c.id)) return false;
        const HazardKind& row = name_conflict(me, kind, &c);
        tell_hazard(core, row, in, kind, address, &c);
        return true;
    }
    // `begin` is where offset 0 is.
    void tell(Core& core, const Instruction& in, Kind kind, const void* address,
              const char* begin) const {
        if (others)
            tell_hazard(core, race_between(in.space, kind, other), in, kind, address, &other);
        else if (stores) maybe_benign_race(core, in, address, store, begin + first, end - first);
    }
};

// The last plain loads of each thread, for the compare-and-swap that may follow.
struct Loads {
    const void* address[4];
    Instruction* by[4];
    unsigned next;
};
static Loads loads[kMaxThreads];

static void note_load(const void* address, Instruction& in) {
    Loads& mine = loads[running.me.id - 1];
    mine.address[mine.next % 4] = address;
    mine.by[mine.next++ % 4] = &in;
}
static void note_compare(const void* address) {
    Loads& mine = loads[running.me.id - 1];
    for (int i = 0; i < 4; ++i)
        if (mine.address[i] == address) mine.by[i]->guess = true;
}

static void access_shared(Core& core, const void* address, size_t size, ptrdiff_t offset, Kind kind,
                          const void* pc) {
    Instruction& in = instruction_at(pc, kShared, kind, size);
    if (!uncounted) count_request(core, in, running.lane, uint64_t(address));
    if (kind == kLoad) note_load(address, in);
    else if (kind == kCompare) note_compare(address);
    if (!core.shared.in_array(offset, size))
        return tell_hazard(core, hazard::out_of_shared, in, kind, address, nullptr);
    if (in.array_block != block_serial || address < in.array ||
        address >= in.array + in.array_bytes) {
        in.array = core.shared.last_array(&in.array_bytes);
        in.array_block = block_serial;
        in.cells = shared_shadow->at(size_t(core.shared.offset(in.array)));
    }
    if (writes(kind) && !(uncounted && is_atomic(kind))) ++tile_stores;
    const Accessor me = accessor(in, kind);
    Races races;
    bool unwritten = false;
    const Ordinary ordinary{block_serial, tile_fences, me.id, in.id};
    shared_shadow->each(size_t(offset), size, [&](Cell& cell, size_t at, unsigned bytes) {
        unwritten |= needs_value(kind) && cell.written != block_serial;
        if (writes(kind)) cell.ordinary = ordinary;
        Conflict c;
        if (__builtin_expect(cell.touch(me, kind, moments, &c), 0)) races.note(c, kind, at, bytes);
    });
    if (is_atomic(kind)) fence_atomic(address, me, kind);
    if (races.any() && races.tell_async(core, in, me, kind, address)) return;
    if (races.any())
        races.tell(core, in, kind, address, static_cast<const char*>(address) - offset);
    else if (unwritten) tell_hazard(core, hazard::uninitialized, in, kind, address, nullptr);
}

static void note_store(Met& met, const Cell& cell) {
    if (cell.phase != phase_serial) return;
    met.clean &= !cell.atomics.first;
    if (!cell.writer) return;
    const Met::Store store{cell.writer, cell.writer_moment};
    if (met.stores.empty() || met.stores.back().party != store.party ||
        met.stores.back().moment != store.moment)
        met.stores.push_back(store);
}

// An asynchronous operation of the running thread. Its stores come by another way than a thread's
// own: those it has to be told of by a fence, of whoever stored or of who begins the operation.
uint16_t touch_for(const AsyncOperation& operation, const void* address, size_t size,
                   const uint16_t* known, const void* pc, Met& met) {
    Core& core = *running.core;
    const ptrdiff_t offset = core.shared.offset(address);
    Instruction& in = instruction_at(pc, kShared, operation.kind, size);
    if (offset == SharedMemory::kElsewhere || !core.shared.in_array(offset, size)) {
        met.clean = false;
        tell_hazard(core, hazard::out_of_shared, in, operation.kind, address, nullptr);
        return in.id;
    }
    settle_benign_race();
    if (operation.kind == kStore) ++tile_stores;
    Accessor me{block_serial, phase_serial, operation.party, in.id, operation.moment,
                nullptr,      known};
    Races races;
    bool unwritten = false, unfenced = false;
    Conflict store{};
    const char* where = nullptr;
    shared_shadow->each(size_t(offset), size, [&](Cell& cell, size_t at, unsigned bytes) {
        unwritten |= operation.kind == kLoad && cell.written != block_serial;
        Ordinary& last = cell.ordinary;
        if (operation.kind == kLoad && last.block == block_serial && last.id &&
            last_tile_fence[last.id - 1] <= last.fences) {
            met.fences = std::max(met.fences, last.fences + 1);
            if (!has_fenced(last.fences + 1) && !unfenced) {
                unfenced = true;
                store = Conflict{last.id, last.instruction, 0, kStore};
                where = static_cast<const char*>(address) - offset + at;
            }
        }
        if (operation.kind == kStore) last.id = 0;
        else note_store(met, cell);
        Conflict c;
        if (__builtin_expect(cell.touch(me, operation.kind, moments, &c), 0))
            races.note(c, operation.kind, at, bytes);
    });
    met.clean &= !races.any() && !unwritten && !unfenced;
    if (races.any()) races.tell_async(core, in, me, operation.kind, address);
    else if (unwritten)
        tell_hazard(core, hazard::uninitialized, in, operation.kind, address, nullptr);
    else if (unfenced) tell_hazard(core, hazard::missing_fence, in, operation.kind, where, &store);
    return in.id;
}

void touch_again(const AsyncOperation& operation, const void* address, size_t size) {
    const ptrdiff_t offset =
        running.core ? running.core->shared.offset(address) : core()->shared.offset(address);
    if (offset == SharedMemory::kElsewhere) return;
    const Accessor me{block_serial,          phase_serial,     operation.party,
                      operation.instruction, operation.moment, nullptr};
    Conflict unused;
    shared_shadow->each(size_t(offset), size, [&](Cell& cell, size_t, unsigned) {
        cell.touch(me, operation.kind, moments, &unused);
    });
}

void touch_as_store(const AsyncOperation& operation, const void* address, size_t size) {
    const Ordinary ordinary{block_serial, tile_fences, operation.thread, operation.instruction};
    ++tile_stores;
    shared_shadow->each(size_t(running.core->shared.offset(address)), size,
                        [&](Cell& cell, size_t, unsigned) { cell.ordinary = ordinary; });
}

// Told of where nothing orders the running launch with work of another stream.
static bool in_two_streams(const Core& core, const Instruction& in, Kind kind, const void* address,
                           size_t size) {
    const Allocation& a = *in.allocation;
    const size_t place = size_t(static_cast<const char*>(address) - in.shadow_first);
    const Unordered other = use_in_stream(a.arena ? *a.arena : a, place, size, kind, in.pc);
    if (other.work) tell_unordered(core, in, kind, address, other);
    return other.work;
}

static void access_global(Core& core, const void* address, size_t size, Kind kind, const void* pc) {
    Instruction& in = instruction_at(pc, kGlobal, kind, size);
    const bool known = find_allocation(in, address, size);
    // Constants have a cache of their own.
    const bool counts = !known || !in.allocation->constant;
    if (counts && !uncounted) count_request(core, in, running.lane, uint64_t(address));
    if (!known) {
        Allocation* near = heap().nearest(address);
        bool freed = near && near->freed && near->holds(address, size);
        // What a module holds beside its variables is the compiler's, unless it is right behind
        // one.
        if (!heap().in_range(address) && !(near && behind(*near, address))) return;
        return tell_hazard(core, freed ? hazard::use_after_free : hazard::out_of_bounds, in, kind,
                           address, nullptr);
    }
    Allocation& a = *in.allocation;
    if (a.constant && writes(kind))
        return tell_hazard(core, hazard::constant_write, in, kind, address, nullptr);
    if (kind == kLoad) note_load(address, in);
    else if (kind == kCompare) note_compare(address);
    const size_t inside = size_t(static_cast<const char*>(address) - a.first);
    bool unwritten = false;
    if (!a.all_written) {
        unwritten = needs_value(kind) && !was_written(a, inside, size);
        if (writes(kind))
            for (size_t i = inside; i < inside + size; ++i)
                a.written[i / 64] |= uint64_t(1) << i % 64;
    }
    in.coverage->note(inside, size, kind);
    const Accessor me = accessor(in, kind);
    Races races;
    bool first = false;  // of this launch
    const size_t place = size_t(static_cast<const char*>(address) - in.shadow_first);
    in.shadow->each(place, size, [&](Word& word, size_t at, unsigned bytes) {
        Conflict c;
        const Noted noted = touch_word(word, me, kind, moments, &c);
        if (counts && noted.first_read) counters.distinct_read += bytes;
        if (counts && noted.first_write) counters.distinct_written += bytes;
        first |= noted.first_read || noted.first_write;
        if (__builtin_expect(noted.race, 0)) races.note(c, kind, at, bytes);
    });
    if (is_atomic(kind)) fence_atomic(address, me, kind);
    if (races.any()) races.tell(core, in, kind, address, in.shadow_first);
    else if (first && several_streams && in_two_streams(core, in, kind, address, size)) return;
    else if (unwritten) tell_hazard(core, hazard::uninitialized_global, in, kind, address, nullptr);
}

// A load of what this launch has written, by a cache that may hold an older value.
void watch_read_only(const void* address, size_t size, const void* pc) {
    Core& core = *running.core;
    Instruction& in = instruction_at(pc, kGlobal, kLoad, size);
    if (!find_allocation(in, address, size) || in.allocation->constant) return;
    const size_t place = size_t(static_cast<const char*>(address) - in.shadow_first);
    bool written = false;
    in.shadow->each(place, size,
                    [&](Word& word, size_t, unsigned) { written |= written_in_launch(word); });
    if (written) tell_hazard(core, hazard::race_with_read_only, in, kLoad, address, nullptr);
}

void watch_fence(bool of_the_device) {
    if (!running.core) return;
    uint16_t& moment = now[running.me.id - 1];
    if (moment < UINT16_MAX) running.me.now = ++moment;
    fence_of_block(running.me);
    if (of_the_device) fence(running.me, running.core->live());
}

void watch_release() {
    if (!running.core) return;
    uint16_t& moment = now[running.me.id - 1];
    if (moment < UINT16_MAX) running.me.now = ++moment;
}

void watch_acquire() {
    if (running.core) running.me.known = known_to(running.me.id - 1);
}

void watch_tile_fence() {
    if (running.core) last_tile_fence[running.me.id - 1] = ++tile_fences;
}

uint32_t stores_to_tiles() { return tile_stores; }
bool has_fenced(uint32_t fences) { return last_tile_fence[running.me.id - 1] >= fences; }

void watch_async_fence() {
    if (running.core) async_fences[{block_serial, running.me.id}] = phase_serial;
}

void watch_unfenced(const void* address, size_t size, const void* pc) {
    Instruction& in = instruction_at(pc, kGlobal, kLoad, size);
    if (async_fences.count({block_serial, running.me.id}) || !find_allocation(in, address, size))
        return;
    const size_t place = size_t(static_cast<const char*>(address) - in.shadow_first);
    bool said = false;
    in.shadow->each(place, size, [&](Word& word, size_t at, unsigned) {
        const Across::Party store = said ? Across::Party{} : last_store(word);
        if (!store.block) return;
        const auto fence = async_fences.find({store.block, store.id});
        if (fence != async_fences.end() && fence->second >= store.phase) return;
        const Conflict other{store.id, store.instruction, store.block, kStore};
        said = true;
        tell_hazard(*running.core, hazard::missing_fence_of_global, in, kLoad, in.shadow_first + at,
                    &other);
    });
}

static bool seen_change = false;

static uint64_t value_at(const void* address, size_t size) {
    uint64_t value = 0;
    memcpy(&value, address, std::min(size, sizeof value));
    return value;
}

// Whether the running thread has done nothing for long but look at, or store to, a few words that
// stay as they are.
static bool waits_for_change(const void* address, size_t size, const void* pc) {
    constexpr uint32_t kPatience = 16;  // times 32 lanes, each behind the last: below kQuantum
    Polls& mine = running.core->polls();
    for (auto& seen : mine.seen) {
        if (seen.address != address || seen.pc != pc) continue;
        const uint64_t value = value_at(address, size);
        const bool same = seen.known && seen.value == value;
        seen_change |= seen.known && !same;
        seen.known = true;
        seen.value = value;
        mine.repeats = same ? mine.repeats + 1 : 0;
        if (mine.repeats <= kPatience) return false;
        mine.repeats = 0;
        return true;
    }
    mine.seen[mine.next++ % 4] = {address, pc, 0, false};
    mine.repeats = 0;
    return false;
}

// Called where the access itself comes next: what it meets is what it is told of.
static inline void let_others_run(Core& core, const void* address, size_t size, const void* pc) {
    if (__builtin_expect(!waits_for_change(address, size, pc), 1)) return;
    core.current->pc = pc;
    running.pc = nullptr;
    core.pause(true);
    running.pc = pc;
}

bool watch_still() {
    constexpr int kMany = 16;
    static int calls = 0;
    calls = std::exchange(seen_change, false) ? 0 : calls + 1;
    return calls >= kMany;
}

static inline void look(const void* address, size_t size, Kind kind, const void* pc) {
    Core& core = *running.core;
    struct Looking {
        explicit Looking(const void* pc) { running.pc = pc; }
        ~Looking() { running.pc = nullptr; }
    } looking(pc);
    if (writes(kind)) settle_benign_race();
    const ptrdiff_t offset = core.shared.offset(address);
    if (offset != SharedMemory::kElsewhere) {
        let_others_run(core, address, size, pc);
        return access_shared(core, address, size, offset, kind, pc);
    }
    if (device_memory->in_range(address) || in_module(address)) {
        let_others_run(core, address, size, pc);
        return access_global(core, address, size, kind, pc);
    }
    if (any_registers && core.stacks.holds(address))
        return watch_register(core, address, size, kind, pc);
    if (any_pinned && writes(kind) && is_pinned(address)) {
        cover_to_host();
        if (device_memory->locked())
            tell_hazard(core, hazard::host_memory, instruction_at(pc, kGlobal, kind, size), kind,
                        address, nullptr,
                        "writes to the host's memory, where the host can read it");
    }
    // What is left is mostly the thread's own: its variables, the launch's arguments.
    if (!host_pointers.empty() && in_host_memory(core, address))
        tell_hazard(core, hazard::host_memory, instruction_at(pc, kGlobal, kind, size), kind,
                    address, nullptr, "follows a pointer to host memory, where a GPU cannot go");
}

void watch_range(const void* address, size_t size, Kind kind, const void* pc) {
    look(address, size, kind, pc);
}

// Tells of an address in device or shared memory that is no multiple of `alignment`.
bool watch_alignment(const void* address, size_t alignment, Kind kind, const void* pc) {
    if (__builtin_expect(!((uintptr_t)address & (alignment - 1)), 1)) return false;
    Core& core = *running.core;
    const bool shared = core.shared.offset(address) != SharedMemory::kElsewhere;
    if (!shared && !device_memory->in_range(address) && !in_module(address)) return false;
    const std::string of_tile = "a tile like this begins at a multiple of " +
                                std::to_string(alignment) + " bytes, and this one lies " +
                                std::to_string((uintptr_t)address % alignment) + " behind one";
    const bool tile = alignment > 16;
    tell_hazard(core, tile ? hazard::misaligned_tile : hazard::misaligned,
                instruction_at(pc, shared ? kShared : kGlobal, kind, alignment), kind, address,
                nullptr, tile ? of_tile.c_str() : nullptr);
    return true;
}

void watch_uncounted(const void* address, size_t size, Kind kind, const void* pc) {
    uncounted = true;
    look(address, size, kind, pc);
    uncounted = false;
}

void watch_copied(const void* address, size_t size, size_t alignment, Kind kind, const void* pc) {
    watch_alignment(address, alignment, kind, pc);
    look(address, size, kind, pc);
}

// One access: its address is a multiple of its size.
void watch_access(const void* address, size_t size, Kind kind, const void* pc) {
    const bool wrong = watch_alignment(address, size, kind, pc);
    running.misaligned = (running.misaligned & 1) << 1 | unsigned(wrong);
    look(address, size, kind, pc);
}

void watch_thread(Core* core, int thread) {
    if (!watched) return;
    settle_benign_race();
    running.core = core;
    running.me = Accessor{block_serial,         phase_serial,
                          uint16_t(thread + 1), 0,
                          now[thread],          synced[thread / 32] ? clocks[thread] : nullptr,
                          known_to(thread)};
    running.steps = &share_of_block->steps[thread];
    running.lane = unsigned(thread) % 32;
    running.bit = 1u << running.lane;
}

void watch_launch(const Launch& launch) {
    if (!watched) return;
    device_memory = &heap();
    fences_launch();
    words_launch(phase_serial + 1);
    async_fences.clear();
    cover_launch();
    begin_traffic();
    shares.clear();
    share_of_block = nullptr;
    lend_modules((const void*)launch.body);
    for (auto it = global_shadows.begin(); it != global_shadows.end();)
        it = it->first->freed && it->second->forget() ? global_shadows.erase(it) : std::next(it);
}

static void begin_phase() {
    words_phase();
    fences_phase();
    ++phase_serial;
    if (any_synced) {
        memset(synced, 0, sizeof synced);
        memset(clocks, 0, sizeof clocks);
        any_synced = false;
    }
    moments.clear();
    std::fill_n(now, kMaxThreads, uint16_t(1));
    order_phase();
    operations_phase();
}

void watch_block() {
    if (!watched) return;
    watch_block_again(++last_serial);
}

void watch_block_again(uint32_t serial) {
    if (!watched) return;
    settle_benign_race();
    block_serial = serial;
    auto& share = shares[serial];
    if (!share) share = new_share();
    share_of_block = share.get();
    fences_block(serial);
    operations_block(serial);
    registers_block();
    order_block(serial);
    begin_phase();
    words_block(block_serial, phase_serial);
    memset(loads, 0, sizeof loads);
    auto& shadow = shared_shadows[&core()->shared];
    if (!shadow) shadow = std::make_unique<Shadow<Cell>>(SharedMemory::kSpan);
    shared_shadow = shadow.get();
}

void watch_block_end(uint32_t serial) {
    if (!watched) return;
    operations_block_end(serial);
    fences_block_end(serial);
    order_block_end(serial);
    settle_requests();  // those of its last warp
    const auto share = shares.find(serial);
    if (share == shares.end()) return;
    uint64_t all = 0;
    for (uint32_t mine : share->second->steps) {
        all += mine;
        counters.thread_steps = std::max<uint64_t>(counters.thread_steps, mine);
    }
    counters.steps += all;
    counters.block_steps = std::max(counters.block_steps, all);
    counters.loaded += share->second->loaded;
    counters.block_loaded = std::max(counters.block_loaded, share->second->loaded);
    spare_shares.push_back(std::move(share->second));
    shares.erase(share);
}

void watch_loaded(uint64_t bytes) {
    if (share_of_block) share_of_block->loaded += bytes;
}

uint32_t watch_serial() { return block_serial; }

void watch_grid_barrier() {
    if (!watched) return;
    fences_launch();
    words_epoch(phase_serial + 1);
}

void watch_phase() {
    if (!watched) return;
    ++counters.barriers;
    begin_phase();
}

void watch_warp_end() {
    if (!watched) return;
    settle_benign_race();
    settle_requests();
}

static void join(int warp, uint32_t lanes) {
    synced[warp] = any_synced = true;
    uint16_t joined[32] = {};
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest), thread = 32 * warp + lane;
        for (int l = 0; l < 32; ++l) joined[l] = std::max(joined[l], clocks[thread][l]);
        joined[lane] = std::max(joined[lane], now[thread]);
    }
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        int thread = 32 * warp + __builtin_ctz(rest);
        memcpy(clocks[thread], joined, sizeof joined);
        ++now[thread];
    }
    share(warp, lanes);
}

void watch_collective(const Core& core, int warp, int kind, uint32_t lanes, uint32_t mask) {
    if (!watched) return;
    if (kind == EMU_SYNCWARP) {
        ++counters.syncwarps;
        join(warp, lanes);
    } else if (kind < EMU_LOAD_MATRICES) {
        ++counters.shuffles;
    }
    // A lane that is named and has left the kernel. (One beyond the block's end never was.)
    int threads = core.launch->threads - 32 * warp;
    uint32_t existing = threads >= 32 ? 0xffffffffu : (1u << threads) - 1;
    if (uint32_t gone = mask & existing & ~lanes)
        watch_site(core, hazard::mask_of_exited_lane, 32 * warp + __builtin_ctz(lanes),
                   32 * warp + __builtin_ctz(gone), &core.meeting(warp));
}

void watch_shuffle(const Core& core, int warp, uint32_t lanes, const int* sources) {
    if (!watched) return;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest), source = sources[lane];
        if (source >= 0 && !(lanes >> source & 1)) absent_lane(core, 32 * warp + lane, source);
    }
}

void watch_launch_end(const Launch& launch) {
    if (!watched) return;
    settle_benign_race();
    settle_requests();
    end_absent_lanes();
    end_hazards();
    end_traffic(launch);
}

}  // namespace emu

using namespace emu;

extern "C" {

// Diagnoses the launches that follow, until emu_watch_end. Memory must be allocated in between.
void emu_watch_begin() {
    if (watched) return;
    watched = true;
    heap().watched = true;
}
// Says that memory holds values that count as written.
void emu_mark_written(const void* first, size_t bytes) { heap().mark_written(first, bytes); }
bool emu_byte_products() {
    if (watched) counters.byte_products += 4;
    return !idle_products();
}
// With `idle`, products of tensor cores, and of four bytes at once, add nothing: what comes out
// shows whether a kernel needs them, or makes them for show.
void emu_set_idle_products(int idle) { idle_products() = idle; }
void emu_watch_end() {
    watched = heap().watched = false;
    running.core = nullptr;
    heap().forget();
    global_shadows.clear();
    forget_words();
    forget_arrays();
    forget_hazards();
    forget_coverage();
    forget_streams();
}

}  // extern "C"
