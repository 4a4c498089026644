// The asynchronous operations of a block, and what a conflict with one of them is called.
#include "under_way.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "block.h"

namespace emu {

struct BlockOperations {
    std::list<AsyncOperation> all;
    std::unordered_map<uint32_t, AsyncOperation*> by_moment;
    std::list<AsyncOperation*> under_way;
};

namespace {

std::map<uint32_t, BlockOperations> of_block;  // by its serial number
BlockOperations* here = nullptr;               // the running block's

// What a clock holds, with zeros for all parties that it does not name; until the next call.
const uint16_t* widened(const Clock& clock) {
    static uint16_t moments[kMostParties];
    static size_t used = 0;
    const std::vector<uint16_t>& latest = clock.moments;
    std::copy(latest.begin(), latest.end(), moments);
    if (latest.size() < used) std::fill(moments + latest.size(), moments + used, uint16_t(0));
    used = latest.size();
    return moments;
}

uint32_t key(uint16_t party, uint16_t moment) { return uint32_t(party) << 16 | moment; }

}  // namespace

void operations_block(uint32_t serial) { here = &of_block[serial]; }
void operations_block_end(uint32_t serial) { of_block.erase(serial); }

// A barrier of the block ends nothing of this.
void operations_phase() {
    for (AsyncOperation* operation : here->under_way)
        for (const Part& part : operation->parts) touch_again(*operation, part.address, part.bytes);
}

AsyncOperation* begin_operation(uint16_t party, uint16_t moment, Kind kind, const void* pc,
                                std::vector<Part> parts, const Clock* clock, Met* met) {
    if (!watching()) return nullptr;
    here->all.emplace_back();
    AsyncOperation& operation = here->all.back();
    operation.party = party;
    operation.moment = moment;
    operation.kind = kind;
    operation.thread = running.me.id;
    operation.began = running.me.now;
    operation.phase = running.me.phase;
    operation.parts = std::move(parts);
    operation.block = here;
    here->by_moment[key(party, moment)] = &operation;
    const uint16_t* mine = widened(clock ? *clock : knowledge(running.me));
    Met unused;
    for (const Part& part : operation.parts)
        operation.instruction =
            touch_for(operation, part.address, part.bytes, mine, pc, met ? *met : unused);
    operation.place = here->under_way.insert(here->under_way.end(), &operation);
    return &operation;
}

void end_as_stores(AsyncOperation* operation) {
    if (!operation) return;
    for (const Part& part : operation->parts) touch_as_store(*operation, part.address, part.bytes);
    end_operation(operation);
}

void end_operation(AsyncOperation* operation) {
    if (operation) operation->block->under_way.erase(operation->place);
}

// Whether the operation is known to have begun: then its end alone was not waited for.
static bool knows_of(const AsyncOperation& operation, const Accessor& me) {
    return operation.phase != me.phase || ordered_within(operation.thread, operation.began, me);
}

const HazardKind& name_conflict(const Accessor& me, Kind kind, Conflict* conflict) {
    if (is_thread(conflict->id)) return hazard::async_race;
    auto it = here->by_moment.find(key(conflict->id, conflict->moment));
    if (it == here->by_moment.end()) return hazard::async_race;
    const AsyncOperation& operation = *it->second;
    conflict->id = operation.thread;
    if (!knows_of(operation, me)) return hazard::async_race;
    if (!operation.committed && operation.waited_past) return hazard::missing_commit;
    return writes(kind) ? hazard::early_write : hazard::early_read;
}

}  // namespace emu
