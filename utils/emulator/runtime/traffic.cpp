// From accesses to requests, from requests to the figures of a launch.
#include "traffic.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "block.h"
#include "hazards.h"
#include "report.h"
#include "requests.h"

namespace emu {

Counters counters;

bool& idle_products() {
    static bool idle = false;
    return idle;
}

namespace {

std::deque<Instruction> instructions;  // by id; addresses stay
std::map<std::pair<uint64_t, Space>, Instruction*> instruction_by_pc;
std::vector<Instruction*> touched;  // by the running warp since its requests were last counted

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

// Moving every address by whole words turns the banks round, and by whole sectors moves the
// sectors: a loop's requests mostly cost what the one before cost.
bool costs_the_same(const Request& before, const Request& now, Space space) {
    uint64_t distance;
    return moved(before, now, &distance) && distance % (space == kShared ? 4 : 32) == 0;
}

struct Cost {  // of a request: passes or sectors, the fewest possible, and lanes that wait
    unsigned actual, ideal, contended;
};

Cost cost_of(const Instruction& in, const Request& request) {
    uint64_t packed[32];
    int n = 0;
    for (uint32_t rest = request.lanes; rest; rest &= rest - 1)
        packed[n++] = request.address[__builtin_ctz(rest)];
    const unsigned contended = plain(in.kind) == kAtomic ? count_contended(packed, n) : 0;
    if (in.space == kShared) {
        const Passes passes = count_passes(request.address, request.lanes, in.size);
        return {passes.actual, passes.ideal, contended};
    }
    const Sectors sectors = count_sectors(packed, n, in.size);
    return {sectors.touched, sectors.ideal, contended};
}

void add(Totals& totals, const Request& request, const Instruction& in, const Cost& cost) {
    const unsigned lanes = unsigned(__builtin_popcount(request.lanes));
    ++totals.requests;
    totals.lanes += lanes;
    totals.bytes += lanes * in.size;
    (in.space == kShared ? totals.passes : totals.sectors) += cost.actual;
    totals.ideal += cost.ideal;
    totals.contended += cost.contended;
}

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

Instruction* find_instruction(const void* pc, Space space, Kind kind, size_t size) {
    Instruction*& known = instruction_by_pc[{uint64_t(pc), space}];
    if (!known) {
        uint16_t id = uint16_t(std::min<size_t>(instructions.size(), 0xffff));
        instructions.push_back(Instruction{uint64_t(pc), id, space, kind, unsigned(size), {}, {}});
        known = &instructions.back();
    }
    return known;
}

const Instruction& instruction(uint16_t id) { return instructions[id]; }

void count_request(Core& core, Instruction& in, unsigned lane, uint64_t address) {
    if (!in.pending.used) touched.push_back(&in);
    if (in.pending.add(lane, address) < kQuantum) return;
    core.pause(false);
    // The rest of the warp has caught up. Where it is the only one that runs, nobody has counted
    // these, and a thread that does all by itself would make them by the gigabyte.
    if (in.pending.count[lane] >= kQuantum) settle_requests();
}

void settle_requests() {
    for (Instruction* in : touched) {
        Pending& pending = in->pending;
        Cost cost{};
        for (uint32_t row = 0; row < pending.used; ++row) {
            const Request& request = pending.rows[row];
            if (row == 0 || !costs_the_same(pending.rows[row - 1], request, in->space))
                cost = cost_of(*in, request);
            add(in->totals, request, *in, cost);
            if (in->space == kGlobal && plain(in->kind) != kStore)
                watch_loaded(uint64_t(__builtin_popcount(request.lanes)) * in->size);
        }
        pending.clear();
    }
    touched.clear();
}

void begin_traffic() {
    for (Instruction& in : instructions) {
        in.totals = Totals{};
        in.allocation = nullptr;  // memory may have been freed
        in.global_bytes = 0;
    }
    counters = Counters{};
}

void end_traffic(const Launch& launch) {
    Json json;
    json.text("event", "launch");
    json.text("kernel", launch.kernel);
    json.position("grid", launch.grid);
    json.position("block", launch.block);
    json.number("dynamic_shared", launch.shared);
    json.number("static_shared", launch.static_shared);
    json.number("barriers", counters.barriers);
    json.number("shuffles", counters.shuffles);
    json.number("syncwarps", counters.syncwarps);
    json.number("tensor_operations", counters.tensor_operations);
    json.number("byte_products", counters.byte_products);
    json.number("steps", counters.steps);
    json.number("thread_steps", counters.thread_steps);
    json.number("block_steps", counters.block_steps);
    json.number("loaded", counters.loaded);
    json.number("block_loaded", counters.block_loaded);
    json.number("distinct_bytes_read", counters.distinct_read);
    json.number("distinct_bytes_written", counters.distinct_written);
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

void forget_arrays() {
    for (Instruction& in : instructions) in.allocation = nullptr, in.global_bytes = 0;
}

}  // namespace emu
