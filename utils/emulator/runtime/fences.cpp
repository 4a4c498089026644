// Which blocks an atomic has made known to which, from the fences that came before it.
#include "fences.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "block.h"

namespace emu {

uint16_t fences_passed[kMaxThreads];
bool handed_on = false;

namespace {

// --- among the threads of a block, since the last barrier

using Moments = std::vector<uint16_t>;  // by thread: what it did before that; 0: nothing
std::unordered_map<const void*, Moments> released;  // by an atomic on this word
std::unordered_map<uint16_t, Moments> known;        // to a thread, by its atomics
uint16_t fence_moment[kMaxThreads];                 // after its last fence; 0: it has passed none
bool fenced = false;

void note(Moments& moments, size_t id, uint16_t moment) {
    if (moments.size() <= id) moments.resize(id + 1);
    moments[id] = std::max(moments[id], moment);
}

void hand_on(const void* address, const Accessor& me, Kind kind) {
    auto word = released.find(address);
    if (reads(kind) && word != released.end()) {
        Moments& mine = known[me.id];
        for (size_t id = 0; id < word->second.size(); ++id)
            if (const uint16_t moment = word->second[id]; moment && id != me.id)
                note(mine, id, moment), handed_on = true;
    }
    if (const uint16_t moment = fence_moment[me.id - 1]; writes(kind) && moment)
        note(released[address], me.id, moment);
}

// --- among blocks

// What the atomics of a block's threads make known of it, by releases, which are numbered: of each
// thread its fences before, and the latest phases so far.
struct Fenced {
    uint32_t number, fences;
};
struct Phases {
    uint32_t number;
    uint32_t fenced;  // of a thread's last fence: what others did in earlier phases is known
    uint32_t all;     // the last phase, now over, in which all threads fenced; 0: none
};
struct OfBlock {
    std::vector<Phases> phases;
    std::unordered_map<uint16_t, std::vector<Fenced>> by_thread;
};
struct Word {
    uint32_t count = 0;  // of releases so far
    std::unordered_map<uint32_t, OfBlock> of_block;
};
// The last of those before a number, or null. Numbers ascend.
template <class Numbered>
const Numbered* last_before(const std::vector<Numbered>& all, uint32_t number) {
    auto end = std::partition_point(all.begin(), all.end(),
                                    [=](const Numbered& one) { return one.number < number; });
    return end == all.begin() ? nullptr : &end[-1];
}
struct Acquired {  // by a thread of the running block, from a word, for the last time
    const Word* word;
    uint32_t count;  // releases that had happened
    uint16_t moment;
    uint32_t phase;
};

std::unordered_map<const void*, Word> words;
std::unordered_map<uint16_t, std::vector<Acquired>> acquired;  // by thread
uint32_t fence_phase[kMaxThreads];
uint32_t counted_phase = 0, full_phase = 0, full_before = 0;  // phases with a fence by all threads
int counted = 0;
bool any = false;  // fence in this block

}  // namespace

void fences_launch() { words.clear(); }

void fences_block() {
    acquired.clear();
    counted_phase = full_phase = full_before = 0;
    if (any) memset(fences_passed, 0, sizeof fences_passed), any = false;
}

void fence(const Accessor& me, int threads) {
    if (me.phase != counted_phase) counted_phase = me.phase, counted = 0;
    if (!fences_passed[me.id - 1] || fence_phase[me.id - 1] != me.phase) ++counted;
    if (counted == threads) {
        if (full_phase != me.phase) full_before = full_phase;
        full_phase = me.phase;
    }
    any = true;
    ++fences_passed[me.id - 1];
    fence_phase[me.id - 1] = me.phase;
}

void fences_phase() {
    if (!fenced) return;
    released.clear();
    known.clear();
    memset(fence_moment, 0, sizeof fence_moment);
    fenced = handed_on = false;
}

void fence_of_block(const Accessor& me) {
    fenced = true;
    fence_moment[me.id - 1] = me.now;
}

bool ordered_by_fence(uint16_t id, uint16_t moment, const Accessor& me) {
    auto it = known.find(me.id);
    return it != known.end() && id < it->second.size() && moment < it->second[id];
}

void fence_atomic(const void* address, const Accessor& me, Kind kind) {
    if (fenced) hand_on(address, me, kind);
    if (!any && words.empty()) return;
    Word& word = words[address];
    if (reads(kind) && word.count) {
        std::vector<Acquired>& mine = acquired[me.id];
        auto before = std::find_if(mine.begin(), mine.end(),
                                   [&](const Acquired& a) { return a.word == &word; });
        if (before == mine.end()) before = mine.insert(before, Acquired{});
        *before = {&word, word.count, me.now, me.phase};
    }
    const uint32_t all = full_phase && full_phase < me.phase ? full_phase : full_before;
    if (!writes(kind) || !(fences_passed[me.id - 1] || all)) return;
    const uint32_t own = fences_passed[me.id - 1] ? fence_phase[me.id - 1] : 0;
    OfBlock& mine = word.of_block[me.block];
    Phases phases{word.count, own, all};
    if (!mine.phases.empty()) {
        phases.fenced = std::max(phases.fenced, mine.phases.back().fenced);
        phases.all = std::max(phases.all, mine.phases.back().all);
    }
    mine.phases.push_back(phases);
    mine.by_thread[me.id].push_back({word.count++, fences_passed[me.id - 1]});
}

bool Across::ordered_across(const Party& party, const Accessor& me) {
    // Whether a release before this one was acquired makes known what the party did.
    auto tells = [&](const Acquired& a) {
        auto it = a.word->of_block.find(party.block);
        if (it == a.word->of_block.end()) return false;
        const Phases* phases = last_before(it->second.phases, a.count);
        if (!phases) return false;
        if (party.phase < phases->fenced || (phases->all && party.phase <= phases->all))
            return true;
        auto thread = it->second.by_thread.find(party.id);
        if (thread == it->second.by_thread.end()) return false;
        const Fenced* fenced = last_before(thread->second, a.count);
        return fenced && party.fences < fenced->fences;
    };
    auto own = acquired.find(me.id);  // mostly it was this thread itself
    if (own != acquired.end() && std::any_of(own->second.begin(), own->second.end(), tells))
        return true;
    for (const auto& [id, of_thread] : acquired) {
        if (id == me.id) continue;
        for (const Acquired& a : of_thread)
            if ((a.phase < me.phase || ordered_within(id, a.moment, me)) && tells(a)) return true;
    }
    return false;
}

}  // namespace emu
