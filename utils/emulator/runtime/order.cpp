// The clocks of a block's parties.
#include "order.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "block.h"

namespace emu {
namespace {

constexpr int kRing = 256;  // parties that do single operations, in turn

uint16_t rows[kMaxThreads][kMostParties];
bool knows[kMaxThreads];  // whether the row is more than zeros
bool any = false;
uint32_t epoch = 0, changes = 0;
struct Parties {                  // of a block
    int count = kOthers - 1;      // with an id, so far
    std::map<int, uint16_t> own;  // by what they do, and for which thread
    uint16_t ring = 0;            // the first of those that take turns
    uint32_t operations = 0;
};
std::map<uint32_t, Parties> of_block;  // by its serial number
Parties* here = nullptr;               // the running block's

// Each to the other one's, where that is larger; many at once.
__attribute__((optimize("O3"))) void raise(uint16_t* to, const uint16_t* other, int count) {
    for (int i = 0; i < count; ++i) to[i] = to[i] < other[i] ? other[i] : to[i];
}

void put(int thread, const uint16_t* known, int count) {
    raise(rows[thread], known, count);
    knows[thread] = any = true;
    ++changes;
}

}  // namespace

void Clock::join(const uint16_t* known, int count) {
    if (int(moments.size()) < count) moments.resize(size_t(count));
    raise(moments.data(), known, count);
}

void Clock::note(uint16_t id, uint16_t moment) {
    if (moments.size() < id) moments.resize(id);
    moments[id - 1u] = std::max(moments[id - 1u], moment);
}

uint32_t order_epoch() { return epoch; }
uint32_t order_changes() { return changes; }
int order_parties() { return here->count; }

void order_phase() {
    ++epoch, ++changes;
    if (!any) return;
    for (int i = 0; i < kMaxThreads; ++i)
        if (knows[i]) memset(rows[i], 0, size_t(here->count) * sizeof rows[i][0]), knows[i] = false;
    any = false;
}

void order_block(uint32_t serial) {
    if (!here) here = &of_block[serial];
    order_phase();
    here = &of_block[serial];
}
void order_block_end(uint32_t serial) {
    if (here == &of_block[serial]) order_phase(), here = nullptr;
    of_block.erase(serial);
}

const uint16_t* known_to(int thread) { return knows[thread] ? rows[thread] : nullptr; }

void learn(int thread, const Clock& clock) {
    put(thread, clock.moments.data(), int(clock.moments.size()));
}

void learn(int thread, uint16_t id, uint16_t moment) {
    uint16_t& known = rows[thread][id - 1];
    known = std::max(known, moment);
    knows[thread] = any = true;
    ++changes;
}

void share(int warp, uint32_t lanes) {
    if (!any) return;
    Clock all;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const int thread = 32 * warp + __builtin_ctz(rest);
        if (knows[thread]) all.join(rows[thread], here->count);
    }
    if (all.moments.empty()) return;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) learn(32 * warp + __builtin_ctz(rest), all);
}

Clock knowledge(const Accessor& me) {
    Clock result;
    if (me.known) result.join(me.known, here->count);
    add_own(result, me);
    return result;
}

void add_own(Clock& clock, const Accessor& me) {
    if (me.clock)
        for (unsigned lane = 0; lane < 32; ++lane)
            if (me.clock[lane])
                clock.note(uint16_t(warp_of(me.id) * 32 + lane + 1), me.clock[lane]);
    clock.note(me.id, me.now);
}

uint16_t party_of(Does what, int thread) {
    uint16_t& id = here->own[int(what) * kMaxThreads + thread];
    if (!id) id = uint16_t(++here->count);
    return id;
}

uint16_t next_party(uint16_t* moment) {
    if (!here->ring) here->ring = uint16_t(here->count + 1), here->count += kRing;
    *moment = uint16_t(here->operations / kRing + 1);
    return uint16_t(here->ring + here->operations++ % kRing);
}

}  // namespace emu
