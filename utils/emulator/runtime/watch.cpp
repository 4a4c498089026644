#include "watch.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "block.h"
#include "device.h"
#include "fences.h"
#include "hazards.h"
#include "heap.h"
#include "reach.h"
#include "report.h"
#include "requests.h"

namespace emu {

Running running;

namespace {

bool on = false;
Heap* device_memory = nullptr;

std::deque<Instruction> instructions;  // by id; addresses stay
std::map<std::pair<uint64_t, Space>, Instruction*> instruction_by_pc;
std::unique_ptr<Shadow<Cell>> shared_shadow;
std::map<const Allocation*, std::unique_ptr<Shadow<GlobalCell>>> global_shadows;
std::vector<uint16_t> moments;

uint32_t launch_serial = 0, block_serial = 0, phase_serial = 0;
uint16_t now[kMaxThreads];
uint16_t clocks[kMaxThreads][32];
bool synced[kMaxThreads / 32];
bool any_synced = false;

std::vector<Instruction*> touched;  // by the running warp since its requests were last counted
uint64_t barriers, shuffles, syncwarps, distinct_read, distinct_written;

Instruction* find_instruction(const void* pc, Space space, Kind kind, size_t size) {
    Instruction*& known = instruction_by_pc[{uint64_t(pc), space}];
    if (!known) {
        uint16_t id = uint16_t(std::min<size_t>(instructions.size(), 0xffff));
        instructions.push_back(Instruction{uint64_t(pc), id, space, kind, unsigned(size), {}, {}});
        known = &instructions.back();
    }
    return known;
}
inline Instruction& instruction_at(const void* pc, Space space, Kind kind, size_t size) {
    uint64_t key = instruction_key(pc, space);
    Running::Bucket& b = instruction_bucket(key);
    if (__builtin_expect(b.key != key, 0)) b = {key, find_instruction(pc, space, kind, size)};
    return *b.instruction;
}

// Whether a request's addresses are another's, all moved by one distance.
bool moved(const Request& from, const Request& to, uint64_t* distance) {
    if (from.lanes != to.lanes) return false;
    const int first = __builtin_ctz(to.lanes);
    const uint64_t d = *distance = to.address[first] - from.address[first];
    uint64_t differs = 0;
    if (to.lanes == 0xffffffffu)
        for (int i = 0; i < 32; ++i) differs |= to.address[i] - from.address[i] - d;
    else
        for (uint32_t rest = to.lanes; rest; rest &= rest - 1)
            differs |= to.address[__builtin_ctz(rest)] - from.address[__builtin_ctz(rest)] - d;
    return differs == 0;
}

// Counts the warp's outstanding requests.
void settle_requests() {
    for (Instruction* in : touched) {
        Pending& p = in->pending;
        Totals& t = in->totals;
        const bool shared = in->space == kShared;
        // Moving every address by whole words turns the banks round, and by whole sectors moves the
        // sectors: a loop's requests mostly cost what the one before cost.
        const uint64_t unit = shared ? 4 : 32;
        unsigned cost = 0, ideal = 0, contended = 0;
        for (uint32_t row = 0; row < p.used; ++row) {
            const Request& r = p.rows[row];
            const int n = __builtin_popcount(r.lanes);
            uint64_t distance;
            if (row == 0 || !moved(p.rows[row - 1], r, &distance) || distance % unit) {
                uint64_t packed[32];
                int k = 0;
                for (uint32_t rest = r.lanes; rest; rest &= rest - 1)
                    packed[k++] = r.address[__builtin_ctz(rest)];
                if (shared) {
                    Passes passes = count_passes(r.address, r.lanes, in->size);
                    cost = passes.actual, ideal = passes.ideal;
                } else {
                    Sectors sectors = count_sectors(packed, n, in->size);
                    cost = sectors.touched, ideal = sectors.ideal;
                }
                contended = in->kind == kAtomic ? count_contended(packed, n) : 0;
            }
            ++t.requests;
            t.lanes += unsigned(n);
            t.bytes += unsigned(n) * in->size;
            (shared ? t.passes : t.sectors) += cost;
            t.ideal += ideal;
            t.contended += contended;
        }
        p.clear();
    }
    touched.clear();
}

// The allocation that holds the access, and its shadow, in in.allocation and in.shadow.
bool find_allocation(Instruction& in, const void* address, size_t size) {
    if (in.allocation && in.allocation->holds(address, size) && !in.allocation->freed) return true;
    Allocation* a = heap().find(address);
    if (!a || !a->holds(address, size)) return false;
    auto& shadow = global_shadows[a];
    if (!shadow) shadow = std::make_unique<Shadow<GlobalCell>>(a->bytes);
    in.allocation = a;
    in.shadow = shadow.get();
    return true;
}

bool was_written(const Allocation& a, size_t offset, size_t size) {
    if (a.all_written) return true;
    for (size_t i = offset; i < offset + size; ++i)
        if (!(a.written[i / 64] >> i % 64 & 1)) return false;
    return true;
}

}  // namespace

bool watching() { return on; }

uint64_t pc_of(uint16_t instruction) { return instructions[instruction].pc; }

static void count_request(Core& core, Instruction& in, unsigned lane, uint64_t address) {
    if (!in.pending.used) touched.push_back(&in);
    if (in.pending.add(lane, address) >= kQuantum) core.pause();
}

static bool behind(const Allocation& a, const void* address) {
    ptrdiff_t distance = static_cast<const char*>(address) - (a.first + a.bytes);
    return distance >= 0 && distance < 4096;
}

static Accessor accessor(const Instruction& in) {
    Accessor me = running.me;
    me.instruction = in.id;
    return me;
}

static void access_shared(Core& core, const void* address, size_t size, ptrdiff_t offset, Kind kind,
                          const void* pc) {
    Instruction& in = instruction_at(pc, kShared, kind, size);
    count_request(core, in, running.lane, uint64_t(address));
    if (!core.in_shared_array(offset, size))
        return tell_hazard(core, "out-of-bounds", in, kind, address, nullptr);
    if (in.array_block != block_serial || address < in.array ||
        address >= in.array + in.array_bytes) {
        in.array = core.last_array(&in.array_bytes);
        in.array_block = block_serial;
        in.cells = shared_shadow->at(size_t(core.shared_offset(in.array)));
    }
    const Accessor me = accessor(in);
    Conflict conflict;
    bool race = false, unwritten = false;
    shared_shadow->each(size_t(offset), size, [&](Cell& cell, unsigned) {
        unwritten |= reads(kind) && cell.written != block_serial;
        Conflict c;
        if (__builtin_expect(cell.touch(me, kind, moments, &c), 0)) race = true, conflict = c;
    });
    if (race) tell_hazard(core, "race", in, kind, address, &conflict);
    else if (unwritten) tell_hazard(core, "uninitialized", in, kind, address, nullptr);
}

static void access_global(Core& core, const void* address, size_t size, Kind kind, const void* pc) {
    Instruction& in = instruction_at(pc, kGlobal, kind, size);
    const bool known = find_allocation(in, address, size);
    if (!known || !in.allocation->lent) count_request(core, in, running.lane, uint64_t(address));
    if (!known) {
        Allocation* near = heap().nearest(address);
        bool freed = near && near->freed && near->holds(address, size);
        // What a module holds beside its variables is the compiler's, unless it is right behind
        // one.
        if (!heap().in_range(address) && !(near && behind(*near, address))) return;
        return tell_hazard(core, freed ? "use-after-free" : "out-of-bounds", in, kind, address,
                           nullptr);
    }
    Allocation& a = *in.allocation;
    const size_t inside = size_t(static_cast<const char*>(address) - a.first);
    bool race = false, unwritten = false;
    if (!a.all_written) {
        unwritten = reads(kind) && !was_written(a, inside, size);
        if (writes(kind))
            for (size_t i = inside; i < inside + size; ++i)
                a.written[i / 64] |= uint64_t(1) << i % 64;
    }
    const Accessor me = accessor(in);
    Conflict conflict;
    in.shadow->each(inside, size, [&](GlobalCell& cell, unsigned bytes) {
        bool fresh = cell.across.launch != launch_serial;
        if (!a.lent && reads(kind) && (fresh || !cell.across.reader.block)) distinct_read += bytes;
        if (!a.lent && writes(kind) && (fresh || !cell.across.writer.block))
            distinct_written += bytes;
        Conflict c;
        if (cell.touch(me, kind, moments, &c)) race = true, conflict = c;
        if (cell.across.touch(launch_serial, me, kind, &c)) race = true, conflict = c;
    });
    if (is_atomic(kind)) fence_atomic(address, me, kind);
    if (race) tell_hazard(core, "race", in, kind, address, &conflict);
    else if (unwritten) tell_hazard(core, "uninitialized", in, kind, address, nullptr);
}

void watch_fence() {
    if (running.core) fence(running.me, running.core->live());
}

void watch_access(const void* address, size_t size, Kind kind, const void* pc) {
    Core& core = *running.core;
    const ptrdiff_t offset = core.shared_offset(address);
    const bool shared = offset != Core::kNotShared;
    if (!shared && !device_memory->in_range(address) && !in_module(address)) {
        // What is left is mostly the thread's own: its variables, the launch's arguments.
        if (!host_pointers.empty() && in_host_memory(core, address))
            tell_hazard(core, "out-of-bounds", instruction_at(pc, kGlobal, kind, size), kind,
                        address, nullptr,
                        "follows a pointer to host memory, where a GPU cannot go");
        return;
    }
    running.misaligned = size <= 16 && ((uintptr_t)address & (size - 1));
    if (running.misaligned)
        tell_hazard(core, "misaligned", instruction_at(pc, shared ? kShared : kGlobal, kind, size),
                    kind, address, nullptr);
    if (shared) access_shared(core, address, size, offset, kind, pc);
    else access_global(core, address, size, kind, pc);
}

void watch_thread(Core* core, int thread) {
    if (!on) return;
    running.core = core;
    running.me = Accessor{block_serial,         phase_serial,
                          uint16_t(thread + 1), 0,
                          now[thread],          synced[thread / 32] ? clocks[thread] : nullptr};
    running.lane = unsigned(thread) % 32;
    running.bit = 1u << running.lane;
}

void watch_launch(const Launch& launch) {
    if (!on) return;
    ++launch_serial;
    device_memory = &heap();
    fences_launch();
    for (Instruction& in : instructions) in.totals = Totals{};
    barriers = shuffles = syncwarps = distinct_read = distinct_written = 0;
    if (!shared_shadow) shared_shadow = std::make_unique<Shadow<Cell>>(kSharedSpan);
    lend_modules((const void*)launch.body);
}

void watch_block() {
    if (!on) return;
    ++block_serial;
    fences_block();
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
    }
    moments.clear();
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
        watch_site(core, "invalid-mask", 32 * warp + __builtin_ctz(lanes),
                   32 * warp + __builtin_ctz(gone));
}

namespace {

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

void watch_launch_end(const Launch& launch) {
    if (!on) return;
    settle_requests();
    end_hazards();

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
// Says that memory holds values that count as written.
void emu_mark_written(const void* first, size_t bytes) { heap().mark_written(first, bytes); }
void emu_watch_end() {
    on = heap().watched = false;
    running.core = nullptr;
    heap().forget();
    global_shadows.clear();
    for (Instruction& in : instructions) in.allocation = nullptr;
    forget_hazards();
}

}  // extern "C"
