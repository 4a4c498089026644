#include "watch.h"

#include <link.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "block.h"
#include "heap.h"
#include "report.h"
#include "requests.h"

namespace emu {
namespace {

constexpr uint32_t kQuantum = 1024;     // requests that one lane may be ahead of its warp
constexpr size_t kMostHazards = 100;    // different ones; each is counted
enum Space : uint8_t { kGlobal, kShared, kOther };

struct Instruction {
    uint64_t pc;
    uint16_t id;
    Space space;
    Kind kind;
    unsigned size;
    bool pending_listed = false;
    Pending pending;
    Totals totals;
};

// Byte-exact cells of one allocation.
struct GlobalCell {
    Cell within;    // the block
    Across across;  // the blocks
};

struct Hazard {
    const char* kind;
    Space space;
    uint16_t instruction, other_instruction;
    bool has_other;
    uint3 block, thread, other_block, other_thread;
    Kind access, other_access;
    std::string array;
    long index;
    uint64_t count;
    EmuSite site, other_site;  // instead of instructions, for barriers
};

bool on = false;

std::deque<Instruction> instructions;  // by id; addresses stay
struct Bucket {
    uint64_t key;
    Instruction* instruction;
};
std::vector<Bucket> table(8192, Bucket{0, nullptr});

std::unique_ptr<Shadow<Cell>> shared_shadow;
std::map<const Allocation*, std::unique_ptr<Shadow<GlobalCell>>> global_shadows;
Allocation* last_allocation = nullptr;
Shadow<GlobalCell>* last_shadow = nullptr;
std::vector<uint16_t> moments;

uint32_t launch_serial = 0, block_serial = 0, phase_serial = 0;
uint16_t now[kMaxThreads];
uint16_t clocks[kMaxThreads][32];
bool synced[kMaxThreads / 32];
bool any_synced = false;

std::vector<Instruction*> touched;  // by the running warp since its requests were last counted
uint64_t barriers, shuffles, syncwarps, distinct_read, distinct_written;
std::map<std::tuple<std::string, uint32_t, uint32_t, std::string>, Hazard> hazards;
uint64_t dropped_hazards;

Instruction& instruction_at(const void* pc, Space space, Kind kind, unsigned size) {
    uint64_t key = (uint64_t)pc * 4 + space;
    for (size_t i = key * 0x9e3779b97f4a7c15ull >> 51;; i = (i + 1) % table.size()) {
        Bucket& b = table[i];
        if (b.key == key) return *b.instruction;
        if (!b.instruction) {
            instructions.push_back(Instruction{(uint64_t)pc, uint16_t(instructions.size()), space, kind, size, false, {}, {}});
            b = Bucket{key, &instructions.back()};
            return instructions.back();
        }
    }
}

uint3 position(unsigned thread, const dim3& block) {
    return uint3{thread % block.x, thread / block.x % block.y, thread / block.x / block.y};
}

// Which array an address is in, and which element of it.
std::string locate(const Core& core, Space space, const void* address, long* index) {
    *index = -1;
    if (space == kShared) {
        ptrdiff_t offset = core.shared_offset(address);
        const Core::Slot* best = nullptr;
        for (const Core::Slot& slot : core.shared_slots()) {
            if (!slot.key || slot.block != core.block_serial()) continue;
            if (ptrdiff_t(slot.offset) <= offset && (!best || slot.offset > best->offset)) best = &slot;
        }
        if (offset >= ptrdiff_t(kDynamicAt) || !best) {
            size_t element = core.dynamic_element ? core.dynamic_element : 1;
            *index = long(offset - ptrdiff_t(kDynamicAt)) / long(element);
            return core.dynamic_name ? core.dynamic_name : "shared memory";
        }
        *index = long(offset - ptrdiff_t(best->offset)) / long(best->key->element);
        return best->key->name;
    }
    Allocation* a = heap().nearest(address);
    if (!a) return "";
    *index = long(static_cast<const char*>(address) - a->first) / long(a->element);
    if (static_cast<const char*>(address) < a->first) *index = -long((a->first - static_cast<const char*>(address) + long(a->element) - 1) / long(a->element));
    return a->name.empty() ? "device memory" : a->name;
}

void hazard(const Core& core, const char* kind, const Instruction& in, Kind access, const void* address,
            const Conflict* other) {
    long index;
    std::string array = locate(core, in.space, address, &index);
    // One race has two sides; whichever came second, it is the same one.
    uint32_t a = in.id, b = other ? other->instruction : in.id;
    auto key = std::make_tuple(std::string(kind), std::min(a, b), std::max(a, b), array);
    auto found = hazards.find(key);
    if (found != hazards.end()) {
        ++found->second.count;
        return;
    }
    if (hazards.size() >= kMostHazards) {
        ++dropped_hazards;
        return;
    }
    Hazard h{};
    h.kind = kind;
    h.space = in.space;
    h.instruction = in.id;
    h.block = core.block;
    h.thread = core.current->index;
    h.access = access;
    h.array = array;
    h.index = index;
    h.count = 1;
    if (other) {
        h.has_other = true;
        h.other_instruction = other->instruction;
        h.other_access = other->kind;
        h.other_thread = position(other->thread, core.launch->block);
        h.other_block = core.block;
        if (other->block != kNoBlock) {
            uint64_t number = other->block - (block_serial - core.block_number());
            h.other_block = position(unsigned(number), core.launch->grid);
        }
    }
    hazards.emplace(key, h);
}

// Counts the warp's outstanding requests.
void settle_requests() {
    for (Instruction* in : touched) {
        in->pending_listed = false;
        Pending& p = in->pending;
        for (uint32_t row = 0; row < p.used; ++row) {
            const Request& r = p.rows[row];
            uint64_t packed[32];
            int n = 0;
            const uint64_t* addresses = r.address;
            if (r.lanes == 0xffffffffu) {
                n = 32;
            } else {
                for (uint32_t rest = r.lanes; rest; rest &= rest - 1) packed[n++] = r.address[__builtin_ctz(rest)];
                addresses = packed;
            }
            Totals& t = in->totals;
            ++t.requests;
            t.lanes += unsigned(n);
            t.bytes += unsigned(n) * in->size;
            if (in->kind == kAtomic) t.contended += count_contended(addresses, n);
            if (in->space == kShared) {
                Passes passes = count_passes(r.address, r.lanes, in->size);
                t.passes += passes.actual;
                t.ideal += passes.ideal;
            } else {
                Sectors sectors = count_sectors(addresses, n, in->size);
                t.sectors += sectors.touched;
                t.ideal += sectors.ideal;
            }
        }
        p.used = 0;
        memset(p.count, 0, sizeof p.count);
    }
    touched.clear();
}

struct Range {
    const char *first, *end;
};
std::vector<Range> modules;  // writable segments of the libraries that kernels came from
bool in_module(const void* address) {
    const char* p = static_cast<const char*>(address);
    for (const Range& r : modules)
        if (p >= r.first && p < r.end) return true;
    return false;
}

Allocation* allocation_at(const void* address, size_t size) {
    if (last_allocation && last_allocation->holds(address, size) && !last_allocation->freed) return last_allocation;
    if (!heap().in_range(address) && !in_module(address)) return nullptr;
    Allocation* a = heap().find(address);
    if (!a || !a->holds(address, size)) return nullptr;
    auto& shadow = global_shadows[a];
    if (!shadow) shadow = std::make_unique<Shadow<GlobalCell>>(a->bytes);
    last_allocation = a;
    last_shadow = shadow.get();
    return a;
}

bool was_written(const Allocation& a, size_t offset, size_t size) {
    if (a.all_written) return true;
    for (size_t i = offset; i < offset + size; ++i)
        if (!(a.written[i / 64] >> i % 64 & 1)) return false;
    return true;
}

// A kernel's own static variables (__device__, __constant__) are device memory too.
int lend_module(dl_phdr_info* info, size_t, void* address) {
    uintptr_t p = (uintptr_t)address;
    bool mine = false;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& h = info->dlpi_phdr[i];
        mine |= h.p_type == PT_LOAD && p >= info->dlpi_addr + h.p_vaddr && p < info->dlpi_addr + h.p_vaddr + h.p_memsz;
    }
    if (!mine) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& h = info->dlpi_phdr[i];
        if (h.p_type != PT_LOAD || !(h.p_flags & PF_W)) continue;
        const void* first = (const void*)(info->dlpi_addr + h.p_vaddr);
        if (in_module(first)) continue;
        heap().lend(first, h.p_memsz);
        modules.push_back({static_cast<const char*>(first), static_cast<const char*>(first) + h.p_memsz});
    }
    return 1;
}

}  // namespace

bool watching() { return on; }

void watch_access(Core& core, const void* address, size_t size, Kind kind, const void* pc) {
    ptrdiff_t offset = core.shared_offset(address);
    Allocation* allocation = nullptr;
    Space space = kShared;
    if (offset == Core::kNotShared) {
        space = kGlobal;
        if (core.stacks.holds(address)) return;  // the thread's own variables
        allocation = allocation_at(address, size);
        if (!allocation && !heap().in_range(address)) return;  // arguments, host memory
    }
    Instruction& in = instruction_at(pc, space, kind, unsigned(size));
    const int thread = core.current_index();
    const unsigned lane = unsigned(thread) % 32;

    if (!(allocation && allocation->lent)) {
        if (!in.pending_listed) {
            in.pending_listed = true;
            touched.push_back(&in);
        }
        uint64_t where = space == kShared ? uint64_t(offset) : (uint64_t)address;
        if (in.pending.add(lane, where) > kQuantum && in.pending.count[lane] >= kQuantum) core.pause();
    }

    if (size <= 16 && ((uintptr_t)address & (size - 1))) hazard(core, "misaligned", in, kind, address, nullptr);

    const int warp = thread / 32;
    const Accessor me{block_serial, phase_serial, uint16_t(thread), in.id, now[thread],
                      synced[warp] ? clocks[thread] : nullptr};
    Conflict conflict;
    bool race = false, unwritten = false;
    if (space == kShared) {
        if (!core.in_shared_array(offset, size)) return hazard(core, "out-of-bounds", in, kind, address, nullptr);
        shared_shadow->each(size_t(offset), size, [&](Cell& cell, unsigned) {
            unwritten |= kind != kStore && cell.written != block_serial;
            Conflict c;
            if (cell.touch(me, kind, moments, &c)) race = true, conflict = c;
        });
    } else {
        if (!allocation) {
            Allocation* near = heap().nearest(address);
            bool freed = near && near->freed && near->holds(address, size);
            return hazard(core, freed ? "use-after-free" : "out-of-bounds", in, kind, address, nullptr);
        }
        size_t inside = size_t(static_cast<const char*>(address) - allocation->first);
        if (!allocation->all_written) {
            unwritten = kind != kStore && !was_written(*allocation, inside, size);
            if (kind != kLoad)
                for (size_t i = inside; i < inside + size; ++i) allocation->written[i / 64] |= uint64_t(1) << i % 64;
        }
        last_shadow->each(inside, size, [&](GlobalCell& cell, unsigned bytes) {
            Conflict c;
            if (!allocation->lent) {
                bool fresh = cell.across.launch != launch_serial;
                if (kind != kStore && (fresh || cell.across.reader == kNoBlock)) distinct_read += bytes;
                if (kind != kLoad && (fresh || cell.across.writer == kNoBlock)) distinct_written += bytes;
            }
            if (cell.within.touch(me, kind, moments, &c)) race = true, conflict = c;
            if (cell.across.touch(launch_serial, me, kind, &c)) race = true, conflict = c;
        });
    }
    if (race) hazard(core, "race", in, kind, address, &conflict);
    else if (unwritten) hazard(core, "uninitialized", in, kind, address, nullptr);
}

void watch_launch(const Launch& launch) {
    if (!on) return;
    ++launch_serial;
    for (Instruction& in : instructions) in.totals = Totals{};
    barriers = shuffles = syncwarps = distinct_read = distinct_written = 0;
    if (!shared_shadow) shared_shadow = std::make_unique<Shadow<Cell>>(kSharedSpan);
    dl_iterate_phdr(lend_module, (void*)launch.body);
}

void watch_block() {
    if (!on) return;
    ++block_serial;
    watch_phase();
    if (barriers) --barriers;  // the beginning of a block is none
}

void watch_phase() {
    if (!on) return;
    ++barriers;
    ++phase_serial;
    if (any_synced) {
        memset(synced, 0, sizeof synced);
        memset(clocks, 0, sizeof clocks);
        any_synced = false;
        moments.clear();
    }
    std::fill_n(now, kMaxThreads, uint16_t(1));
}

void watch_warp_end() {
    if (on && !touched.empty()) settle_requests();
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
}

void watch_collective(const Core& core, int warp, int kind, uint32_t lanes, uint32_t mask) {
    if (!on) return;
    if (kind == EMU_SYNCWARP) {
        ++syncwarps;
        join(warp, lanes);
    } else {
        ++shuffles;
    }
    // A lane that is named and has left the kernel. (One beyond the block's end never was.)
    int threads = core.launch->threads - 32 * warp;
    uint32_t existing = threads >= 32 ? 0xffffffffu : (1u << threads) - 1;
    if (uint32_t gone = mask & existing & ~lanes)
        watch_site(core, "invalid-mask", 32 * warp + __builtin_ctz(lanes), 32 * warp + __builtin_ctz(gone));
}

void watch_site(const Core& core, const char* kind, int thread, int other) {
    const Fibre &mine = core.fibre(thread), &theirs = core.fibre(other);
    auto key = std::make_tuple(std::string(kind), uint32_t(mine.site.line), uint32_t(theirs.site.line), std::string());
    auto found = hazards.find(key);
    if (found != hazards.end()) {
        ++found->second.count;
        return;
    }
    Hazard h{};
    h.kind = kind;
    h.space = kOther;
    h.has_other = true;
    h.block = h.other_block = core.block;
    h.thread = mine.index;
    h.other_thread = theirs.index;
    h.site = mine.site;
    h.other_site = theirs.site;
    h.count = 1;
    hazards.emplace(key, h);
}

namespace {

const char* space_name(Space space) { return space == kShared ? "shared" : "global"; }
const char* kind_name(Kind kind) { return kind == kLoad ? "load" : kind == kStore ? "store" : "atomic"; }

void write_totals(Json& json, const Totals& t, Space space) {
    json.number("requests", t.requests);
    json.number("lanes", t.lanes);
    json.number("bytes", t.bytes);
    if (space == kShared) json.number("wavefronts", t.passes);
    else json.number("sectors", t.sectors);
    json.number("ideal", t.ideal);
    if (t.contended) json.number("contended", t.contended);
}

}  // namespace

// A load that races with the store it should have waited for also came before it here: that it
// read what nobody had written yet is the same fault.
static void drop_consequences() {
    for (auto it = hazards.begin(); it != hazards.end();) {
        bool consequence = false;
        if (!strcmp(it->second.kind, "uninitialized"))
            for (auto& [key, h] : hazards)
                consequence |= !strcmp(h.kind, "race") && h.array == it->second.array &&
                               (h.instruction == it->second.instruction ||
                                h.other_instruction == it->second.instruction);
        it = consequence ? hazards.erase(it) : std::next(it);
    }
}

void watch_launch_end(const Launch& launch) {
    if (!on) return;
    settle_requests();
    drop_consequences();
    for (auto& [key, h] : hazards) {
        Json json;
        json.text("event", "hazard");
        json.text("kind", h.kind);
        if (h.space != kOther) json.text("space", space_name(h.space));
        json.text("kernel", launch.kernel);
        json.position("block", h.block);
        json.position("thread", h.thread);
        if (h.site.file) json.site("", h.site);
        else json.code("", (const void*)instructions[h.instruction].pc);
        if (h.space != kOther) {
            json.text("access", kind_name(h.access));
            json.text("array", h.array.c_str());
            json.integer("index", h.index);
        }
        if (h.has_other) {
            json.position("other_block", h.other_block);
            json.position("other_thread", h.other_thread);
            if (h.other_site.file) json.site("other_", h.other_site);
            else json.code("other_", (const void*)instructions[h.other_instruction].pc);
            if (h.space != kOther) json.text("other_access", kind_name(h.other_access));
        }
        json.number("count", h.count);
        json.end();
    }
    if (dropped_hazards) {
        Json json;
        json.text("event", "more-hazards");
        json.number("count", dropped_hazards);
        json.end();
    }
    hazards.clear();
    dropped_hazards = 0;

    Json json;
    json.text("event", "launch");
    json.text("kernel", launch.kernel);
    json.position("grid", launch.grid);
    json.position("block", launch.block);
    json.number("dynamic_shared", launch.shared);
    json.number("static_shared", launch.static_shared);
    json.number("barriers", barriers);
    json.number("shuffles", shuffles);
    json.number("syncwarps", syncwarps);
    json.number("distinct_bytes_read", distinct_read);
    json.number("distinct_bytes_written", distinct_written);
    json.begin_list("instructions");
    for (Instruction& in : instructions) {
        if (!in.totals.requests) continue;
        json.begin_object();
        json.code("", (const void*)in.pc);
        json.text("space", space_name(in.space));
        json.text("access", kind_name(in.kind));
        json.number("size", in.size);
        write_totals(json, in.totals, in.space);
        json.end_object();
    }
    json.end_list();
    json.end();
}

}  // namespace emu

using namespace emu;

extern "C" {

// Diagnoses the launches that follow, until emu_watch_end. Memory must be allocated in between.
void emu_watch_begin() {
    if (on) return;
    on = true;
    heap().watched = true;
}
void emu_watch_end() {
    on = heap().watched = false;
    global_shadows.clear();
    last_allocation = nullptr;
}

}  // extern "C"
