// Which blocks an atomic has made known to which, from the fences that came before it.
#include "fences.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <utility>
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

// What is known of a thread's doings: that it has released them, as of its latest release. Each
// number is at most the one of a later release.
struct Release {
    uint64_t who;     // block, thread
    uint32_t fences;  // of the thread, before it
    uint32_t fenced;  // phase of the last of these: what others did in earlier ones is known
    uint32_t all;     // the last phase, now over, in which all threads fenced; 0: none
};
using Known = std::vector<Release>;  // ascending by `who`

uint64_t who(uint32_t block, uint16_t id) { return uint64_t(block) << 16 | id; }

// Whether the one makes known all that the other does, of the same thread.
bool covers(const Release& one, const Release& other) {
    return one.fences >= other.fences && one.fenced >= other.fenced && one.all >= other.all;
}

void join(Release& to, const Release& other) {
    to.fences = std::max(to.fences, other.fences);
    to.fenced = std::max(to.fenced, other.fenced);
    to.all = std::max(to.all, other.all);
}

bool covers(const Known& known, const Known& other) {
    auto mine = known.begin();
    for (const Release& theirs : other) {
        while (mine != known.end() && mine->who < theirs.who) ++mine;
        if (mine == known.end() || mine->who != theirs.who || !covers(*mine, theirs)) return false;
    }
    return true;
}

// Whether there was anything new.
bool join(Known& to, const Known& other) {
    if (covers(to, other)) return false;
    Known both;
    both.reserve(to.size() + other.size());
    auto mine = to.begin();
    for (const Release& theirs : other) {
        while (mine != to.end() && mine->who < theirs.who) both.push_back(*mine++);
        Release last = theirs;
        if (mine != to.end() && mine->who == theirs.who) join(last, *mine++);
        both.push_back(last);
    }
    both.insert(both.end(), mine, to.end());
    to = std::move(both);
    return true;
}

bool tells(const Known& known, const Across::Party& party) {
    auto at = std::partition_point(known.begin(), known.end(), [&](const Release& release) {
        return release.who < who(party.block, 0);
    });
    for (; at != known.end() && at->who >> 16 == party.block; ++at) {
        if (party.phase < at->fenced || (at->all && party.phase <= at->all)) return true;
        if (at->who == who(party.block, party.id) && party.fences < at->fences) return true;
    }
    return false;
}

// So many threads' releases are kept apart. Of a word with more everything counts as known, and so
// of whoever learns of it: a launch that large takes too long otherwise, and no order is told
// wrong.
constexpr size_t kMostKnown = 512;

struct Word {
    bool everything = false;
    uint32_t count = 0;            // of releases so far that made something known
    std::shared_ptr<Known> known;  // by them; who learns of it shares it, and a release copies it
};
std::unordered_map<const void*, Word> words;

// What a thread has learned in this phase, after each of its moments. Of a thread that learns all
// the time the first moments are taken for one: others that came after it then know as much as it
// did a little later. A fence that is missing there may go unseen; nothing is told that is not so.
struct Learner {
    static constexpr size_t kMost = 32;  // each may hold a few kilobytes, for each thread
    struct Then {
        uint16_t moment;
        uint32_t number;   // ascending
        const Word* word;  // of which it is; null: of several
        std::shared_ptr<Known> known;
    };
    std::vector<Then> then;
    uint32_t learned = 0;  // so many times
    struct Met {
        const Word* word;
        uint32_t count;     // of its releases: so many are known
        uint32_t released;  // of the block's news: so many has this thread made known there,
        uint32_t learned;   // and so much of what it has learned itself
    };
    std::vector<Met> words;
    Met& met(const Word& word) {
        for (Met& each : words)
            if (each.word == &word) return each;
        return words.emplace_back(Met{&word, 0, 0, 0});
    }
    void learn(const Word& word, uint16_t moment) {
        if (then.size() == kMost) {
            Then &first = then[0], &second = then[1];
            if (first.word != second.word || !first.word) {
                auto both = std::make_shared<Known>(*first.known);
                join(*both, *second.known);
                first.known = std::move(both);
                first.word = nullptr;
            } else {
                first.known = std::move(second.known);  // a word makes known ever more
            }
            first.number = second.number;
            then.erase(then.begin() + 1);
        }
        then.push_back({moment, ++learned, &word, word.known});
    }
};

// Of a block that has begun, while others run too.
struct OfBlock {
    Known known;                                     // to all its threads, since earlier phases
    std::unordered_map<uint16_t, Learner> learners;  // by thread
    uint16_t passed[kMaxThreads] = {};
    uint32_t phase[kMaxThreads] = {};                             // of a thread's last fence
    uint32_t counted_phase = 0, full_phase = 0, full_before = 0;  // with a fence by all threads
    int counted = 0;
    uint32_t news = 0;        // fences, and what was learned, so far
    bool any = false;         // fence
    bool everything = false;  // is known to it
};
std::unordered_map<uint32_t, std::unique_ptr<OfBlock>> blocks;  // by serial number
OfBlock* here = nullptr;                                        // of the running one
bool any_here = false;                                          // fences_passed holds its numbers

OfBlock& make_here(uint32_t serial) {
    auto& block = blocks[serial];
    if (!block) block = std::make_unique<OfBlock>();
    return *(here = block.get());
}

}  // namespace

void fences_launch() { words.clear(); }

void fences_block(uint32_t serial) {
    if (here && here->any) memcpy(here->passed, fences_passed, sizeof fences_passed);
    auto known = blocks.find(serial);
    here = known == blocks.end() ? nullptr : known->second.get();
    if (here && here->any) memcpy(fences_passed, here->passed, sizeof fences_passed);
    else if (any_here) memset(fences_passed, 0, sizeof fences_passed);
    any_here = here && here->any;
}

void fences_block_end(uint32_t serial) {
    auto known = blocks.find(serial);
    if (known == blocks.end()) return;
    if (here == known->second.get()) here = nullptr;
    blocks.erase(known);
}

void fence(const Accessor& me, int threads) {
    OfBlock& b = make_here(me.block);
    if (me.phase != b.counted_phase) b.counted_phase = me.phase, b.counted = 0;
    if (!fences_passed[me.id - 1] || b.phase[me.id - 1] != me.phase) ++b.counted;
    if (b.counted == threads) {
        if (b.full_phase != me.phase) b.full_before = b.full_phase;
        b.full_phase = me.phase;
    }
    b.any = any_here = true;
    ++b.news;
    ++fences_passed[me.id - 1];
    b.phase[me.id - 1] = me.phase;
}

void fences_phase() {
    if (here && !here->learners.empty()) {
        for (auto& [id, learner] : here->learners)
            for (const Learner::Then& then : learner.then) join(here->known, *then.known);
        here->learners.clear();
    }
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

// What the word makes known, to the running thread.
static void acquire(const Word& word, const Accessor& me) {
    OfBlock& b = make_here(me.block);
    if (word.everything || b.everything) {
        b.everything = true;
        return;
    }
    Learner& learner = b.learners[me.id];
    Learner::Met& met = learner.met(word);
    if (met.count == word.count) return;
    met.count = word.count;
    learner.learn(word, me.now);
    ++b.news;
}

// A copy of what the word makes known, if others look at it.
static Known& own(Word& word) {
    if (!word.known) word.known = std::make_shared<Known>();
    else if (word.known.use_count() > 1) word.known = std::make_shared<Known>(*word.known);
    return *word.known;
}

static bool release(Word& word, const Known& what) {
    if (what.empty() || (word.known && covers(*word.known, what))) return false;
    return join(own(word), what);
}

// The same for one thread.
static bool release(Word& word, const Release& what) {
    auto place = [&](Known& known) {
        return std::partition_point(known.begin(), known.end(),
                                    [&](const Release& each) { return each.who < what.who; });
    };
    if (word.known) {
        auto at = place(*word.known);
        if (at != word.known->end() && at->who == what.who && covers(*at, what)) return false;
    }
    Known& known = own(word);
    auto at = place(known);
    if (at == known.end() || at->who != what.who) return known.insert(at, what), true;
    join(*at, what);
    return true;
}

// What the running thread makes known with the word: its own doings before its last fence, and what
// it has learned itself, so that who learns of this one knows of those before it.
static void release(Word& word, const Accessor& me) {
    OfBlock& b = *here;
    if (b.everything || word.everything || (word.known && word.known->size() > kMostKnown)) {
        word.everything = true;
        word.known.reset();
        ++word.count;
        return;
    }
    const uint32_t all = b.full_phase && b.full_phase < me.phase ? b.full_phase : b.full_before;
    const uint32_t passed = fences_passed[me.id - 1];
    if (!passed && !all) return;
    Learner& learner = b.learners[me.id];
    Learner::Met& met = learner.met(word);
    if (met.released == b.news) return;  // a thread that waits comes here over and over
    met.released = b.news;
    const uint32_t fenced = passed ? b.phase[me.id - 1] : 0;
    bool any = release(word, Release{who(me.block, me.id), passed, fenced, all});
    any |= release(word, b.known);
    for (const Learner::Then& then : learner.then)  // what is the word's own it has already
        if (then.number > met.learned && then.word != &word) any |= release(word, *then.known);
    met.learned = learner.learned;
    if (any) ++word.count;
}

void fence_atomic(const void* address, const Accessor& me, Kind kind) {
    if (fenced) hand_on(address, me, kind);
    if (!any_here && words.empty()) return;
    Word& word = words[address];
    if (reads(kind) && word.count) acquire(word, me);
    if (writes(kind) && here) release(word, me);
}

bool Across::ordered_across(const Party& party, const Accessor& me, bool* unfenced) {
    if (!here) return false;
    if (here->everything || tells(here->known, party)) return true;
    for (const auto& [id, learner] : here->learners)
        for (const Learner::Then& then : learner.then) {
            if (!ordered_within(id, then.moment, me) || !tells(*then.known, party)) continue;
            if (!me.loads || id != me.id || then.moment < me.now) return true;
            *unfenced = true;
        }
    return false;
}

}  // namespace emu
