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

struct Moment {
    uint16_t id, moment;  // what the thread did before that
};
std::unordered_map<const void*, std::vector<Moment>> released;  // by an atomic on this word
std::unordered_map<uint16_t, std::vector<Moment>> known;        // to a thread, by its atomics
uint16_t fence_moment[kMaxThreads];  // after its last fence; 0: it has passed none
bool fenced = false;

void note(std::vector<Moment>& moments, Moment one) {
    for (Moment& m : moments)
        if (m.id == one.id) {
            m.moment = std::max(m.moment, one.moment);
            return;
        }
    moments.push_back(one);
}

void hand_on(const void* address, const Accessor& me, Kind kind) {
    auto word = released.find(address);
    if (reads(kind) && word != released.end()) {
        for (const Moment& m : word->second)
            if (m.id != me.id) note(known[me.id], m), handed_on = true;
    }
    if (const uint16_t moment = fence_moment[me.id - 1]; writes(kind) && moment)
        note(released[address], Moment{me.id, moment});
}

// --- among blocks

struct Release {  // what a thread's atomic makes known of its block
    uint32_t block;
    uint16_t id, fences;   // the thread, and its fences before
    uint32_t fence_phase;  // of its last fence: what others did in earlier phases is known
    uint32_t all_phase;    // the last phase, now over, in which all threads fenced; 0: none
};
struct Word {
    uint32_t count = 0;  // of releases so far
    std::unordered_map<uint32_t, std::vector<std::pair<uint32_t, Release>>>
        of_block;  // and their numbers
};
struct Acquired {  // by the running block
    const Word* word;
    uint32_t count;  // releases that had happened
    uint16_t id, moment;
    uint32_t phase;
};

std::unordered_map<const void*, Word> words;
std::vector<Acquired> acquired;
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
    auto found = known.find(me.id);
    if (found == known.end()) return false;
    for (const Moment& m : found->second)
        if (m.id == id) return moment < m.moment;
    return false;
}

void fence_atomic(const void* address, const Accessor& me, Kind kind) {
    if (fenced) hand_on(address, me, kind);
    if (!any && words.empty()) return;
    Word& word = words[address];
    if (reads(kind) && word.count) {
        for (Acquired& a : acquired)
            if (a.word == &word && a.id == me.id) a.word = nullptr;  // replaced by the later one
        acquired.push_back(Acquired{&word, word.count, me.id, me.now, me.phase});
    }
    const uint32_t all = full_phase && full_phase < me.phase ? full_phase : full_before;
    if (!writes(kind) || !(fences_passed[me.id - 1] || all)) return;
    const uint32_t own = fences_passed[me.id - 1] ? fence_phase[me.id - 1] : 0;
    word.of_block[me.block].push_back(
        {word.count++, Release{me.block, me.id, fences_passed[me.id - 1], own, all}});
}

bool Across::ordered_across(const Party& party, const Accessor& me) {
    for (const Acquired& a : acquired) {
        const bool known =
            a.id == me.id || a.phase < me.phase || ordered_within(a.id, a.moment, me);
        if (!a.word || !known) continue;
        auto found = a.word->of_block.find(party.block);
        if (found == a.word->of_block.end()) continue;
        for (auto& [number, r] : found->second)
            if (number < a.count &&
                ((party.id == r.id && party.fences < r.fences) || party.phase < r.fence_phase ||
                 (r.all_phase && party.phase <= r.all_phase)))
                return true;
    }
    return false;
}

}  // namespace emu
