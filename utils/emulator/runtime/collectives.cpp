// Warp collectives: lanes wait until all that a mask names have come, then each takes its result.
//
// A kind is a row of kCollectives, with a function that combines what the lanes brought. That
// function knows neither the scheduler nor the lanes' other business; what follows it here knows
// no kind but by its row.
#include "collectives.h"

#include <cstring>

#include "../include/emulator/errors.h"
#include "block.h"
#include "tensor_cores.h"
#include "warp_products.h"
#include "watch.h"

namespace emu {
namespace {

template <class Visit>
inline void each_lane(unsigned lanes, Visit visit) {
    for (; lanes; lanes &= lanes - 1) visit(__builtin_ctz(lanes));
}

// Turns what `lanes`, one at least, have brought into what each of them takes away. More than 8
// bytes are brought as their address: the stack of a lane that waits stays as it is.
using Combine = void (*)(unsigned lanes, Exchange& exchange);

void meet(unsigned, Exchange&) {}

void shuffle(unsigned lanes, Exchange& exchange) {
    uint64_t brought[32];
    memcpy(brought, exchange.value, sizeof brought);
    each_lane(lanes, [&](int lane) {
        const int source = exchange.parameter[lane];
        if (source < 0) return;  // it keeps its own
        // A lane that takes no part has nothing to give.
        exchange.value[lane] = lanes >> source & 1 ? brought[source] : kNobodys;
    });
}

void give_all(unsigned lanes, Exchange& exchange, uint64_t result) {
    each_lane(lanes, [&](int lane) { exchange.value[lane] = result; });
}

void ballot(unsigned lanes, Exchange& exchange) {
    uint64_t votes = 0;
    each_lane(lanes, [&](int lane) { votes |= uint64_t(exchange.value[lane] == 1) << lane; });
    give_all(lanes, exchange, votes);
}

void match_any(unsigned lanes, Exchange& exchange) {
    while (lanes) {  // those that have not found their equals yet
        const uint64_t value = exchange.value[__builtin_ctz(lanes)];
        unsigned same = 0;
        each_lane(lanes, [&](int l) { same |= unsigned(exchange.value[l] == value) << l; });
        give_all(same, exchange, same);
        lanes &= ~same;
    }
}

void match_all(unsigned lanes, Exchange& exchange) {
    const uint64_t first = exchange.value[__builtin_ctz(lanes)];
    bool equal = true;
    each_lane(lanes, [&](int lane) { equal &= exchange.value[lane] == first; });
    give_all(lanes, exchange, equal ? lanes : 0);
}

template <class T, T (*fold)(T, T)>
void reduce(unsigned lanes, Exchange& exchange) {
    T total = T(exchange.value[__builtin_ctz(lanes)]);
    each_lane(lanes & (lanes - 1), [&](int lane) { total = fold(total, T(exchange.value[lane])); });
    give_all(lanes, exchange, uint64_t(total));
}
uint64_t sum(uint64_t a, uint64_t b) { return a + b; }
template <class T>
T least(T a, T b) {
    return b < a ? b : a;
}
template <class T>
T most(T a, T b) {
    return a < b ? b : a;
}
uint32_t both(uint32_t a, uint32_t b) { return a & b; }
uint32_t either(uint32_t a, uint32_t b) { return a | b; }
uint32_t differ(uint32_t a, uint32_t b) { return a ^ b; }

struct Collective {
    EmuCollective kind;
    const char* name;
    Combine combine;
};
constexpr Collective kCollectives[] = {
    {EMU_SYNCWARP, "__syncwarp", meet},
    {EMU_SHUFFLE, "__shfl_sync", shuffle},
    {EMU_BALLOT, "__ballot_sync", ballot},
    {EMU_MATCH_ANY, "__match_any_sync", match_any},
    {EMU_MATCH_ALL, "__match_all_sync", match_all},
    {EMU_REDUCE_ADD, "__reduce_add_sync", reduce<uint64_t, sum>},
    {EMU_REDUCE_MIN_S, "__reduce_min_sync", reduce<int32_t, least>},
    {EMU_REDUCE_MAX_S, "__reduce_max_sync", reduce<int32_t, most>},
    {EMU_REDUCE_MIN_U, "__reduce_min_sync", reduce<uint32_t, least>},
    {EMU_REDUCE_MAX_U, "__reduce_max_sync", reduce<uint32_t, most>},
    {EMU_REDUCE_AND, "__reduce_and_sync", reduce<uint32_t, both>},
    {EMU_REDUCE_OR, "__reduce_or_sync", reduce<uint32_t, either>},
    {EMU_REDUCE_XOR, "__reduce_xor_sync", reduce<uint32_t, differ>},
    {EMU_SHUFFLE_UP, "__shfl_up_sync", shuffle},
    {EMU_SHUFFLE_DOWN, "__shfl_down_sync", shuffle},
    {EMU_SHUFFLE_XOR, "__shfl_xor_sync", shuffle},
    {EMU_LOAD_MATRICES, "ldmatrix", combine_matrices},
    {EMU_MMA, "mma", combine_products},
    {EMU_MMA_BF16, "mma", combine_products},
    {EMU_MMA_TF32, "mma", combine_products},
    {EMU_MMAS, "mma", combine_batches},
    {EMU_WGMMA, "wgmma", combine_warpgroup},
    {EMU_WGMMA_BF16, "wgmma", combine_warpgroup},
    {EMU_WGMMA_TF32, "wgmma", combine_warpgroup},
    {EMU_WGMMAS, "wgmma", combine_pending},
    {EMU_WGMMA_FENCE, "wgmma_fence", combine_warpgroup},
    {EMU_WGMMA_COMMIT, "wgmma_commit", combine_warpgroup},
    {EMU_WGMMA_WAIT, "wgmma_wait", combine_warpgroup},
};
constexpr bool rows_stand_at_their_kinds() {
    for (int i = 0; i < int(sizeof kCollectives / sizeof *kCollectives); ++i)
        if (kCollectives[i].kind != i) return false;
    return true;
}
static_assert(rows_stand_at_their_kinds(), "kCollectives is indexed by kind");

}  // namespace

const char* collective_name(int kind) { return kCollectives[kind].name; }

uint64_t Core::collective(int kind, unsigned mask, uint64_t value, int parameter, EmuSite site) {
    Fibre* self = current;
    const int i = index(self), lane = i % 32;
    const unsigned bit = 1u << lane;
    Warp& warp = warps_[i / 32];
    Exchange& exchange = exchanges_[i / 32];
    self->waits = Waits::kCollective;
    self->kind = kind;
    self->mask = mask;
    self->site = site;
    exchange.value[lane] = value;
    exchange.parameter[lane] = parameter;
    exchange.kind[lane] = kind;
    exchange.mask[lane] = mask;
    if (!(mask & bit))
        fail(cudaErrorLaunchFailure, hazard::invalid_mask, site, self->pc,
             "lane %d called %s with mask 0x%08x, which does not name it", lane,
             collective_name(kind), mask);
    warp.runnable &= ~bit;
    warp.waiting |= bit;
    if (!(mask & warp.live & ~warp.waiting)) settle(i / 32);
    if (!(warp.runnable & bit)) yield();
    else watch_thread(this, i);  // a __syncwarp has moved its clock
    return exchange.value[lane];
}

// Whether all of a group's lanes wait for what its first lane waits for.
inline bool Core::has_come(int w, unsigned group, int first) const {
    if (group & ~warps_[w].waiting) return false;
    const Exchange& exchange = exchanges_[w];
    unsigned others = 0;
    for (int lane = 0; lane < 32; ++lane) {
        const bool other = exchange.mask[lane] != exchange.mask[first] ||
                           exchange.kind[lane] != exchange.kind[first];
        others |= unsigned(other) << lane;
    }
    return !(others & group);
}

void Core::note_meeting(int w, unsigned group) {
    Meeting& meeting = meetings_[w];
    if (meeting.here.file) return;
    const Fibre& first = fibre(32 * w + __builtin_ctz(group));
    each_lane(group, [&](int lane) {
        const Fibre& f = fibre(32 * w + lane);
        if (f.site.line != first.site.line)
            meeting = Meeting{first.site, f.site, first.kind, first.pc, f.pc};
    });
}

// Completes every collective of the warp whose lanes have all come. Lanes that have left the
// kernel are not waited for.
void Core::settle(int w) {
    Warp& warp = warps_[w];
    Fibre* lanes = &fibres_[size_t(32 * w)];
    for (unsigned pending = warp.waiting; pending;) {
        const int lane = __builtin_ctz(pending);
        const Fibre& first = lanes[lane];
        const unsigned group = first.mask & warp.live;
        const bool complete = has_come(w, group, lane);
        pending &= pending - 1;
        if (!complete) continue;
        pending &= ~group;
        if (watching()) note_meeting(w, group);
        watch_collective(*this, w, first.kind, group, first.mask);
        settling_ = w;
        if (kCollectives[first.kind].combine == shuffle)
            watch_shuffle(*this, w, group, exchanges_[w].parameter);
        kCollectives[first.kind].combine(group, exchanges_[w]);
        each_lane(group, [&](int lane) { lanes[lane].waits = Waits::kNothing; });
        warp.waiting &= ~group;
        warp.runnable |= group;
    }
}

unsigned Core::active_mask(EmuSite site) {
    Fibre* self = current;
    const int i = index(self);
    self->waits = Waits::kActiveMask;
    self->site = site;
    warps_[i / 32].runnable &= ~(1u << i % 32);
    yield();
    return unsigned(exchanges_[i / 32].value[i % 32]);
}

// Lanes that ask who is active wait until their warp can do nothing else; those at one place in
// the source then are each other's active lanes.
void Core::settle_active_mask(int w) {
    Fibre* lanes = &fibres_[size_t(32 * w)];
    EmuSite site{};
    unsigned group = 0;
    each_lane(warps_[w].live, [&](int lane) {
        const Fibre& f = lanes[lane];
        if (f.waits != Waits::kActiveMask) return;
        if (!group) site = f.site;
        if (f.site.line == site.line && f.site.file == site.file) group |= 1u << lane;
    });
    if (!group) return;
    give_all(group, exchanges_[w], group);
    each_lane(group, [&](int lane) { lanes[lane].waits = Waits::kNothing; });
    warps_[w].runnable |= group;
}

}  // namespace emu

using emu::core;

extern "C" uint64_t emu_collective(int kind, unsigned mask, uint64_t value, int parameter,
                                   EmuSite site) {
    core()->current->pc = EMU_CALLER;
    return core()->collective(kind, mask, value, parameter, site);
}
extern "C" unsigned emu_active_mask(EmuSite site) { return core()->active_mask(site); }
