// From an access that went wrong to an event: its array and elements, the other side, how often.
#include "hazards.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "block.h"
#include "coverage.h"
#include "heap.h"
#include "report.h"
#include "streams.h"
#include "traffic.h"
#include "waits.h"

namespace emu {

namespace {

constexpr size_t kMostHazards = 30;  // different ones of a kind in a launch; each is counted

constexpr const char* kSameValue = "race of the same value";  // counted apart from other races

// Told when it is first met, in full: the run may end any time. How often, when the launch ends.
struct Hazard {
    size_t number;
    uint64_t count;
};
struct HazardKey {
    std::string kind;           // or kSameValue
    uint32_t side, other_side;  // instructions, or lines of barriers; the smaller one first
    std::string array;
    bool operator<(const HazardKey& o) const {
        return std::tie(kind, side, other_side, array) <
               std::tie(o.kind, o.side, o.other_side, o.array);
    }
};

constexpr uint32_t kTooMany = ~0u;  // the sides of all hazards of a kind that are one too many

std::map<HazardKey, Hazard> hazards;
std::map<std::string, size_t> hazards_of_kind;
size_t reported = 0;                                          // hazards, in the whole run
std::set<std::pair<const void*, const char*>> known_of_host;  // by place and variant

uint3 position(unsigned thread, const dim3& block) {
    return uint3{thread % block.x, thread / block.x % block.y, thread / block.x / block.y};
}

struct Place {  // of an access: elements `first` to `last` of an array
    std::string array;
    long first = -1, last = -1;
    long length = 0;                  // of the array, in elements; 0 where nobody knows
    const size_t* extents = nullptr;  // of a shared array, outermost first, then a 0
};

Place place(std::string array, long offset, long element, size_t size, size_t bytes) {
    auto index = [=](long at) {
        return at >= 0 ? at / element : -((element - 1 - at) / element);  // rounded down
    };
    return {std::move(array), index(offset), index(offset + long(size) - 1), long(bytes) / element};
}

// In the array that holds the offset, or ends before it.
Place locate_shared(const SharedMemory& shared, ptrdiff_t offset, size_t size, size_t dynamic) {
    const EmuSharedKey* best = nullptr;
    size_t best_offset = 0;
    shared.each_array([&](const EmuSharedKey& key, size_t start) {
        if (ptrdiff_t(start) <= offset && (!best || start > best_offset))
            best = &key, best_offset = start;
    });
    if (offset < ptrdiff_t(SharedMemory::kDynamicAt) && best) {
        Place at = place(best->name, offset - ptrdiff_t(best_offset), long(best->element), size,
                         best->size);
        at.extents = best->extents;
        return at;
    }
    const size_t element = shared.dynamic_element ? shared.dynamic_element : 1;
    return place(shared.dynamic_name ? shared.dynamic_name : "shared memory",
                 offset - ptrdiff_t(SharedMemory::kDynamicAt), long(element), size, dynamic);
}

Place locate(const Core& core, Space space, const void* address, size_t size) {
    if (space == kShared)
        return locate_shared(core.shared, core.shared.offset(address), size, core.launch->shared);
    if (core.stacks.holds(address)) return {"registers"};
    Allocation* a = heap().nearest(address);
    if (!a || (!heap().in_range(address) && !a->lent)) return {"host memory"};
    const long element = long(a->element == 1 ? size : a->element);
    return place(a->name.empty() ? "device memory" : a->name,
                 long(static_cast<const char*>(address) - a->first), element, size, a->bytes);
}

// Counts a hazard; true where it is a new one that is to be told.
bool new_hazard(const std::string& kind, uint32_t side, uint32_t other_side,
                const std::string& array, size_t* number) {
    // One race has two sides; whichever came second, it is the same one.
    HazardKey key{kind, std::min(side, other_side), std::max(side, other_side), array};
    auto it = hazards.find(key);
    if (it == hazards.end() && hazards_of_kind[kind] >= kMostHazards) {
        key = HazardKey{kind, kTooMany, kTooMany, ""};
        it = hazards.find(key);
        if (it == hazards.end()) hazards[key] = Hazard{0, 1};
        else ++it->second.count;
        return false;
    }
    if (it != hazards.end()) {
        ++it->second.count;
        return false;
    }
    ++hazards_of_kind[kind];
    hazards[key] = Hazard{* number = ++reported, 1};
    return true;
}

void begin_hazard(Json& json, const Core& core, const HazardKind& kind, size_t number,
                  uint3 thread) {
    json.text("event", "hazard");
    json.number("number", number);
    json.text("kind", kind.kind);
    json.text("variant", kind.variant);
    json.text("kernel", core.launch->kernel);
    json.position("block", core.block);
    json.position("thread", thread);
}

void describe(Json& json, const Instruction& in, Kind access, const Place& at) {
    json.text("space", space_name(in.space));
    json.code("", (const void*)in.pc);
    json.text("access", kind_name(access));
    json.text("array", at.array.c_str());
    json.integer("index", at.first);
    json.integer("last", at.last);
    json.integer("length", at.length);
    if (at.extents) json.numbers("extents", at.extents);
}

// What is begun and not waited for is on one of its sides.
bool is_async(const HazardKey& hazard) {
    return hazard.kind == hazard::async_race.kind || hazard.kind == hazard::early_read.kind ||
           hazard.kind == hazard::early_write.kind || hazard.kind == hazard::missing_commit.kind;
}

// A load that races with the store it should have waited for also came before it here: that it
// read what nobody had written yet is the same fault.
bool is_consequence(const HazardKey& hazard) {
    if (hazard.kind != hazard::uninitialized.kind) return false;
    for (auto& [key, h] : hazards)
        if ((key.kind == hazard::race.kind || is_async(key)) && key.array == hazard.array &&
            (key.side == hazard.side || key.other_side == hazard.side))
            return true;
    return false;
}

// A plain load whose value is but the first guess of a compare-and-swap, against an atomic: if it
// was too old, the swap fails and brings the newer one.
bool is_guess(const HazardKey& hazard) {
    if (hazard.kind != hazard::race.kind || hazard.side == kTooMany) return false;
    const Instruction &one = instruction(uint16_t(hazard.side)),
                      &other = instruction(uint16_t(hazard.other_side));
    return (one.guess && plain(other.kind) == kAtomic) ||
           (other.guess && plain(one.kind) == kAtomic);
}

// Stores of the same value here, of different ones there: one race. And what one thread did too
// early for sure, others perhaps did.
bool is_told_better(const HazardKey& hazard) {
    auto also = [&](const HazardKind& kind) {
        HazardKey other = hazard;
        other.kind = kind.kind;
        return hazards.count(other) != 0;
    };
    if (hazard.kind == kSameValue) return also(hazard::race);
    return hazard.kind == hazard::async_race.kind &&
           (also(hazard::early_read) || also(hazard::early_write) || also(hazard::missing_commit));
}

}  // namespace

const char* space_name(Space space) { return space == kShared ? "shared" : "global"; }
const char* kind_name(Kind kind) {
    kind = plain(kind);
    return kind == kLoad ? "load" : kind == kStore ? "store" : "atomic";
}

const HazardKind& race_between(Space space, Kind access, const Conflict& other) {
    if (other.unfenced) return hazard::race_of_unfenced_read;
    if (scope_of_block && other.block) return hazard::race_of_scope;
    const Kind mine = plain(access), theirs = plain(other.kind);
    if (space == kGlobal && (mine == kAtomic || theirs == kAtomic)) return hazard::race_of_atomic;
    const bool stores = mine == kStore && theirs == kStore;
    if (other.block) return stores ? hazard::race_of_blocks_stores : hazard::race_of_blocks;
    return stores ? hazard::race_of_stores : hazard::race;
}

void tell_hazard(const Core& core, const HazardKind& kind, const Instruction& in, Kind access,
                 const void* address, const Conflict* other, const char* message, int thread) {
    const Place at = locate(core, in.space, address, in.size);
    size_t number;
    const char* counted = &kind == &hazard::race_of_same_value ? kSameValue : kind.kind;
    if (!new_hazard(counted, in.id, other ? other->instruction : in.id, at.array, &number)) return;
    Json json;
    begin_hazard(json, core, kind, number,
                 core.fibre(thread < 0 ? core.current_index() : thread).index);
    describe(json, in, access, at);
    if (message) json.text("message", message);
    if (other) {
        uint3 block = core.block;
        if (other->block)
            block = position(unsigned(other->block - (running.me.block - core.block_number())),
                             core.launch->grid);
        json.position("other_block", block);
        json.position("other_thread", position(other->id - 1u, core.launch->block));
        json.code("other_", (const void*)instruction(other->instruction).pc);
        json.text("other_access", kind_name(other->kind));
    }
    json.end();
}

namespace {

void tell_other(Json& json, const Unordered& other) {
    json.text("other_kernel", other.work->name.c_str());
    json.text("other_access", kind_name(other.kind));
    if (other.pc) json.code("other_", (const void*)other.pc);
}

void tell_of_host(const HazardKind& kind, const Allocation& a, const void* address, const void* pc,
                  const char* access, const Unordered* other, const char* message) {
    if (!known_of_host.insert({pc, kind.variant}).second) return;
    Json json;
    json.text("event", "hazard");
    json.number("number", ++reported);
    json.text("kind", kind.kind);
    json.text("variant", kind.variant);
    json.text("space", "global");
    json.code("", pc);
    json.text("array", a.name.empty() ? "device memory" : a.name.c_str());
    if (access) json.text("access", access);
    const long element = long(a.element ? a.element : 1);
    json.integer("index", (static_cast<const char*>(address) - a.first) / element);
    if (message) json.text("message", message);
    if (other) tell_other(json, *other);
    json.end();
}

}  // namespace

void tell_unordered(const Core& core, const Instruction& in, Kind access, const void* address,
                    const Unordered& other) {
    const Place at = locate(core, in.space, address, in.size);
    size_t number;
    if (!new_hazard(hazard::race_of_streams.variant, in.id, in.id, at.array, &number)) return;
    Json json;
    begin_hazard(json, core, hazard::race_of_streams, number,
                 core.fibre(core.current_index()).index);
    describe(json, in, access, at);
    tell_other(json, other);
    json.end();
}

void tell_unordered_copy(const Allocation& a, const void* address, Kind access,
                         const Unordered& other, const void* pc) {
    tell_of_host(hazard::race_of_streams, a, address, pc, kind_name(access), &other, nullptr);
}

void tell_left(const std::string& kernel) {
    Json json;
    json.text("event", "hazard");
    json.number("number", ++reported);
    json.text("kind", hazard::left_in_stream.kind);
    json.text("variant", hazard::left_in_stream.variant);
    json.text("space", "global");
    json.text("kernel", kernel.c_str());
    json.text("message", "it may still run when its results are read");
    json.end();
}

void watch_host_access(const void* address, size_t size, Kind kind, const void* pc) {
    Allocation* a = heap().nearest(address);
    if (!a) return;
    if (!a->managed)
        return tell_of_host(hazard::host_code, *a, address, pc, nullptr, nullptr,
                            "host code follows a pointer to device memory; cudaMemcpy brings the "
                            "values");
    cover_to_host();
    if (!a->holds(address, size)) return;
    const size_t offset = size_t(static_cast<const char*>(address) - a->first);
    const Unordered other = use_by_host(*a, offset, size, kind);
    if (other.work)
        tell_of_host(hazard::race_with_host, *a, address, pc, kind_name(kind), &other, nullptr);
}

void watch_site(const Core& core, const HazardKind& kind, int thread, int other,
                const Meeting* met) {
    // Threads that have met at different barriers stay one apart: said once for a block.
    static uint32_t diverged = 0;
    const bool barrier = &kind == &hazard::divergent_barrier;
    if (barrier && std::exchange(diverged, running.me.block) == running.me.block) return;
    const Fibre &mine = core.fibre(thread), &theirs = core.fibre(other);
    EmuSite there = theirs.site;
    const bool apart = met && met->here.file;
    if (apart) there = met->here.line == mine.site.line ? met->there : met->here;
    size_t number;
    if (!new_hazard(kind.kind, uint32_t(mine.site.line), uint32_t(there.line), "", &number)) return;
    report_waits(core);
    Json json;
    const bool left_out = barrier && !theirs.site.file;
    begin_hazard(json, core, left_out ? hazard::barrier_left_out : kind, number, mine.index);
    json.site("", mine.site);
    json.code("", mine.pc);
    json.position("other_block", core.block);
    json.position("other_thread", theirs.index);
    if (there.file) json.site("other_", there);
    if (apart) json.text("before", met_before(*met).c_str());
    json.end();
}

void tell_meeting(const Core& core, const HazardKind& kind, int thread, const char* message) {
    const Fibre& fibre = core.fibre(thread);
    size_t number;
    if (!new_hazard(kind.kind, uint32_t(fibre.site.line), uint32_t(fibre.site.line), "", &number))
        return;
    Json json;
    begin_hazard(json, core, kind, number, fibre.index);
    json.number("remark", 1);
    json.site("", fibre.site);
    json.code("", fibre.pc);
    json.text("message", message);
    json.end();
}

void certain(const HazardKind& kind, const std::string& consequence) {
    for (auto& [key, h] : hazards) {
        if (key.kind != kind.kind || !h.number) continue;
        Json json;
        json.text("event", "hazard-certain");
        json.number("number", h.number);
        json.text("consequence", consequence.c_str());
        json.end();
    }
}

void end_hazards() {
    for (auto& [key, h] : hazards) {
        const bool withdrawn = is_consequence(key) || is_guess(key) || is_told_better(key);
        const uint64_t count = withdrawn ? 0 : h.count;
        if (count == 1 && h.number) continue;
        Json json;
        json.text("event", h.number ? "hazard-count" : "more-hazards");
        if (h.number) json.number("number", h.number);
        else json.text("of", key.kind == kSameValue ? hazard::race.kind : key.kind.c_str());
        json.number("count", count);
        json.end();
    }
    hazards.clear();
    hazards_of_kind.clear();
}

void forget_hazards() {
    reported = 0;
    known_of_host.clear();
}

}  // namespace emu
