// The deeds of a block, and what a conflict with one of them is called.
#include "under_way.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "block.h"

namespace emu {

struct BlockDeeds {
    std::list<Deed> all;
    std::unordered_map<uint32_t, Deed*> by_moment;
    std::list<Deed*> under_way;
};

namespace {

std::map<uint32_t, BlockDeeds> of_block;  // by its serial number
BlockDeeds* here = nullptr;               // the running block's

// What a clock holds, with zeros for all parties that it does not name; until the next call.
const uint16_t* widened(const Clock& clock) {
    static uint16_t moments[kMostParties];
    static size_t used = 0;
    const std::vector<uint16_t>& given = clock.moments;
    std::copy(given.begin(), given.end(), moments);
    if (given.size() < used) std::fill(moments + given.size(), moments + used, uint16_t(0));
    used = given.size();
    return moments;
}

uint32_t key(uint16_t party, uint16_t moment) { return uint32_t(party) << 16 | moment; }

}  // namespace

void deeds_block(uint32_t serial) { here = &of_block[serial]; }
void deeds_block_end(uint32_t serial) { of_block.erase(serial); }

// A barrier of the block ends nothing of this.
void deeds_phase() {
    for (Deed* deed : here->under_way)
        for (const Part& part : deed->parts) touch_again(*deed, part.address, part.bytes);
}

Deed* begin_deed(uint16_t party, uint16_t moment, Kind kind, const void* pc,
                 std::vector<Part> parts, const Clock* clock) {
    if (!watching()) return nullptr;
    here->all.emplace_back();
    Deed& deed = here->all.back();
    deed.party = party;
    deed.moment = moment;
    deed.kind = kind;
    deed.thread = running.me.id;
    deed.began = running.me.now;
    deed.phase = running.me.phase;
    deed.parts = std::move(parts);
    deed.block = here;
    here->by_moment[key(party, moment)] = &deed;
    const uint16_t* mine = widened(clock ? *clock : knowledge(running.me));
    for (const Part& part : deed.parts)
        deed.instruction = touch_for(deed, part.address, part.bytes, mine, pc);
    deed.place = here->under_way.insert(here->under_way.end(), &deed);
    return &deed;
}

void end_as_stores(Deed* deed) {
    if (!deed) return;
    for (const Part& part : deed->parts) touch_as_store(*deed, part.address, part.bytes);
    end_deed(deed);
}

void end_deed(Deed* deed) {
    if (deed) deed->block->under_way.erase(deed->place);
}

// Whether the deed is known to have begun: then its end alone was not waited for.
static bool knows_of(const Deed& deed, const Accessor& me) {
    return deed.phase != me.phase || ordered_within(deed.thread, deed.began, me);
}

const HazardKind& name_conflict(const Accessor& me, Kind kind, Conflict* conflict) {
    if (is_thread(conflict->id)) return hazard::async_race;
    auto found = here->by_moment.find(key(conflict->id, conflict->moment));
    if (found == here->by_moment.end()) return hazard::async_race;
    const Deed& deed = *found->second;
    conflict->id = deed.thread;
    if (!knows_of(deed, me)) return hazard::async_race;
    if (!deed.committed && deed.neglected) return hazard::missing_commit;
    return writes(kind) ? hazard::early_write : hazard::early_read;
}

}  // namespace emu
