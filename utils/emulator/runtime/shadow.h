// Who touched each word of memory since the last barrier, and whether two of them raced.
//
// Happens-before: a block barrier orders everything before it with everything after; __syncwarp
// orders the lanes it names; a fence and an atomic order two threads (fences.h), what waits for a
// barrier in memory or a copy comes after it (order.h); nothing else orders two blocks of a launch.
// A cell keeps just enough to answer exactly: the last plain write, and for reads and for atomics
// the lanes of one warp and one thread of another. Threads of different warps are unordered within
// a phase, so one witness is enough there.
//
// Cells are all zero at first, so that a shadow can be mapped and is touched only where it is used.
#pragma once

#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <vector>

namespace emu {

// From kAtomic on: atomic operations, which read and write; the last but one needs no old value,
// the last writes where it finds what it expects. A volatile access, where these count as atomic,
// does one of the two.
enum Kind : uint8_t { kLoad, kStore, kAtomic, kAtomicLoad, kAtomicStore, kExchange, kCompare };
inline bool reads(Kind kind) { return kind != kStore && kind != kAtomicStore; }
// An exchange is mostly there to write: what it gives back is used or not, nobody knows.
inline bool needs_value(Kind kind) { return reads(kind) && kind != kExchange; }
inline bool writes(Kind kind) { return kind != kLoad && kind != kAtomicLoad; }
inline Kind plain(Kind kind) {
    return kind == kAtomicLoad    ? kLoad
           : kind == kAtomicStore ? kStore
           : kind >= kExchange    ? kAtomic
                                  : kind;
}
inline bool is_atomic(Kind kind) { return kind >= kAtomic; }
enum Space : uint8_t { kGlobal, kShared };

// The accessing thread. `clock[l]` is the last moment of lane l that this thread has synchronised
// with by __syncwarp; `now` is its own moment, 1 at the start of a phase, and one more after each
// __syncwarp and each fence.
struct Accessor {
    uint32_t block, phase;  // serials from 1: of the block, and of the part between two barriers
    uint16_t id;            // thread + 1: 0 is nobody
    uint16_t instruction;
    uint16_t now;
    const uint16_t* clock;  // 32 lanes; null while the warp has not synchronised in this phase
    const uint16_t* known = nullptr;  // of each party the last moment that is over, see order.h
    bool loads = false;               // by a plain load
    bool of_block = false;  // by an atomic operation which for other blocks is a plain access
};
inline unsigned lane_of(uint16_t id) { return (id - 1u) % 32; }
inline unsigned warp_of(uint16_t id) { return (id - 1u) / 32; }

extern uint16_t fences_passed[];  // of the device, by each thread, in this block
extern bool handed_on;  // whether a fence has ordered two threads of a block in this phase
bool ordered_by_fence(uint16_t id, uint16_t moment, const Accessor& me);  // in one block

// Whether what a thread of the block did at a moment of this phase is ordered before `me`.
inline bool ordered_within(uint16_t id, uint16_t moment, const Accessor& me) {
    if (id == me.id) return true;
    if (warp_of(id) == warp_of(me.id) && me.clock && me.clock[lane_of(id)] >= moment) return true;
    if (me.known && me.known[id - 1] >= moment) return true;
    return __builtin_expect(handed_on, 0) && ordered_by_fence(id, moment, me);
}

struct Conflict {  // the other side of a race
    uint16_t id, instruction;
    uint32_t block;  // serial; 0: the accessor's own
    Kind kind;
    uint16_t moment = 0;    // of a party that is no thread
    bool unfenced = false;  // the accessor has learned of it, and lacks a fence of its own
};

// Threads that read a word, or updated it atomically, in one phase of one block.
struct Several {
    uint16_t first, first_instruction;
    uint16_t other, other_moment;  // a thread of another warp than `first`
    uint16_t other_instruction;
    uint16_t first_moment;
    uint32_t lanes;  // of first's warp
    // Where in the pool 32 moments and then 32 instructions are, one a lane; 0: nowhere, all
    // happened at the first moment by the first instruction.
    uint32_t moments;

    void add(const Accessor& me, std::vector<uint16_t>& pool) {
        if (!first) {
            first = me.id;
            first_instruction = me.instruction;
            first_moment = me.now;
        } else if (warp_of(first) != warp_of(me.id)) {
            // One that `me` is after is as good as forgotten: who is after `me` is after it.
            if (!other || other == me.id || ordered_within(other, other_moment, me)) {
                other = me.id;
                other_moment = me.now;
                other_instruction = me.instruction;
            }
            return;
        }
        lanes |= 1u << lane_of(me.id);
        const bool alike = me.instruction == first_instruction && !moments;
        if (alike && lanes == 1u << lane_of(me.id)) first_moment = me.now;  // it is alone
        else if (__builtin_expect(!alike || me.now != first_moment, 0)) note_moment(me, pool);
    }

    // A thread that is not ordered before `me`, or 0.
    uint16_t unordered(const Accessor& me, const std::vector<uint16_t>& pool, uint16_t* instruction,
                       uint16_t* moment) const {
        if (!first) return 0;
        *instruction = first_instruction;
        const bool mine = warp_of(first) == warp_of(me.id);
        *moment = moments ? pool[moments + lane_of(first)] : first_moment;
        if (!mine && !handed_on && !me.known) return first;
        if (other && !ordered_within(other, other_moment, me))
            return *instruction = other_instruction, *moment = other_moment, other;
        for (uint32_t rest = mine ? lanes & ~(1u << lane_of(me.id)) : lanes; rest;
             rest &= rest - 1) {
            unsigned lane = unsigned(__builtin_ctz(rest));
            uint16_t id = uint16_t(warp_of(first) * 32 + lane + 1);
            *moment = moments ? pool[moments + lane] : first_moment;
            if (ordered_within(id, *moment, me)) continue;
            if (moments) *instruction = pool[moments + 32 + lane];
            return id;
        }
        return 0;
    }

    void forget() {  // the place in the pool stays
        first = other = 0;
        lanes = 0;
    }

   private:
    void note_moment(const Accessor& me, std::vector<uint16_t>& pool) {
        if (!moments) {
            if (pool.empty()) pool.resize(64);  // index 0 means none
            moments = uint32_t(pool.size());
            pool.resize(pool.size() + 32, first_moment);
            pool.resize(pool.size() + 32, first_instruction);
        }
        pool[moments + lane_of(me.id)] = me.now;
        pool[moments + 32 + lane_of(me.id)] = me.instruction;
    }
};

// The last store that came from a thread's own instruction, which copies and products of tiles see
// only behind a fence (order.h); in this block.
struct Ordinary {
    uint32_t block, fences;  // fences: in all, when it happened
    uint16_t id, instruction;
};

struct Cell {
    uint32_t phase;    // of what follows; another phase's is history
    uint32_t written;  // the block that last wrote it, for reads of what nobody wrote
    uint32_t split;    // where its bytes have cells of their own; 0: nowhere
    uint16_t writer, writer_instruction, writer_moment;
    bool updated;  // whether among the atomics is more than loads
    Several readers, atomics;
    Ordinary ordinary;

    // Notes the access; true where it races, with the other side in *conflict.
    bool touch(const Accessor& me, Kind kind, std::vector<uint16_t>& pool, Conflict* conflict) {
        if (phase != me.phase) {
            phase = me.phase;
            writer = readers.first = readers.other = atomics.first = atomics.other = 0;
            readers.lanes = readers.moments = atomics.lanes = atomics.moments = 0;
            updated = false;
        }
        // Of several conflicts the last one found counts: a store's with a store comes first, since
        // it may turn out to be harmless.
        bool race = false;
        uint16_t instruction = 0, moment = 0;
        auto against = [&](const Several& others, Kind theirs) {
            if (uint16_t id = others.unordered(me, pool, &instruction, &moment))
                *conflict = Conflict{id, instruction, 0, theirs, moment}, race = true;
        };
        if (writer && !ordered_within(writer, writer_moment, me)) {
            *conflict = Conflict{writer, writer_instruction, 0, kStore, writer_moment};
            race = true;
        }
        if (atomics.first && (kind == kStore || (kind == kLoad && updated && !race)))
            against(atomics, kAtomic);
        if (kind == kLoad) {
            readers.add(me, pool);
            return race;
        }
        if (writes(kind) && (kind == kStore || !race)) against(readers, kLoad);
        if (writes(kind)) written = me.block;
        updated |= is_atomic(kind) && writes(kind);
        if (is_atomic(kind)) {
            atomics.add(me, pool);
            return race;
        }
        // Who is after this store is after those that it is after.
        if (me.known && !race) readers.forget(), atomics.forget();
        writer = me.id, writer_instruction = me.instruction, writer_moment = me.now;
        return race;
    }
};

// What the blocks of a launch did to a word of global memory: for each kind of access a first
// block, and for reads and atomics one more.
struct Across {
    struct Party {
        uint32_t block;  // serial; 0: nobody
        uint32_t phase;
        uint16_t id, instruction, fences;  // fences: that the thread had passed
    };
    uint32_t epoch;  // of the launch: a barrier of the whole grid begins another
    bool updated;    // whether among the atomics is more than loads
    Party writer, reader, reader_other, atomic, atomic_other;

    bool touch(uint32_t this_epoch, const Accessor& me, Kind kind, Conflict* conflict) {
        if (epoch != this_epoch) {
            epoch = this_epoch;
            writer = reader = reader_other = atomic = atomic_other = Party{};
            updated = false;
        }
        bool race = against(writer, kStore, me, conflict);
        if ((kind == kStore || (kind == kLoad && updated && !race)) && !follows_own_atomic(me))
            race |= against(atomic, kAtomic, me, conflict) ||
                    against(atomic_other, kAtomic, me, conflict);
        if (writes(kind) && (kind == kStore || !race))
            race |=
                against(reader, kLoad, me, conflict) || against(reader_other, kLoad, me, conflict);
        if (kind == kStore) writer = party_of(me);
        else if (kind == kLoad) note(reader, reader_other, me);
        else note(atomic, atomic_other, me);
        updated |= is_atomic(kind) && writes(kind);
        return race;
    }

    static Party party_of(const Accessor& me) {
        return Party{me.block, me.phase, me.id, me.instruction, fences_passed[me.id - 1]};
    }
    // By fences, see fences.h. *unfenced: it would be, if the accessor had one of its own.
    static bool ordered_across(const Party& party, const Accessor& me, bool* unfenced);
    static bool against(const Party& party, Kind kind, const Accessor& me, Conflict* conflict) {
        bool unfenced = false;
        if (!party.block || party.block == me.block || ordered_across(party, me, &unfenced))
            return false;
        *conflict = Conflict{party.id, party.instruction, party.block, kind, 0, unfenced};
        return true;
    }

   private:
    // The block's own atomic came after those of all others, and everything after it does too: so
    // the last of the blocks that count may set the counter back.
    bool follows_own_atomic(const Accessor& me) const {
        return atomic_other.block == me.block &&
               (atomic_other.id == me.id || atomic_other.phase < me.phase);
    }
    static void note(Party& first, Party& other, const Accessor& me) {
        if (!first.block) first = party_of(me);
        else if (first.block != me.block && !(other.block == me.block && other.phase == me.phase))
            other = party_of(me);
    }
};

inline uint32_t split_of(const Cell& cell) { return cell.split; }
inline void divide_record(Cell& whole, std::array<Cell, 4>& bytes, uint32_t place) {
    bytes.fill(whole);
    whole.split = place;
}

// Records for a range of memory: one a 4-byte word, four where single bytes of it are accessed.
template <class T>
class Shadow {
   public:
    explicit Shadow(size_t bytes) : size_((bytes / 4 + 1) * sizeof(T)) {
        void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            perror("emulator: no memory for diagnosis");
            abort();
        }
        words_ = static_cast<T*>(memory);
        bytes_.resize(1);
    }
    ~Shadow() { munmap(words_, size_); }
    Shadow(const Shadow&) = delete;

    T* at(size_t offset) { return words_ + offset / 4; }
    // What others hold of its records; false where those of single bytes are not known here.
    bool forget() {
        if (bytes_.size() == 1) forget_words_of(words_, size_ / sizeof(T));
        return bytes_.size() == 1;
    }

    // Calls visit(record, offset, bytes) for each record that the bytes [offset, offset + size)
    // touch.
    template <class Visit>
    void each(size_t offset, size_t size, Visit visit) {
        for (size_t word = offset / 4, last = (offset + size - 1) / 4; word <= last; ++word) {
            size_t begin = word * 4 < offset ? offset : word * 4;
            size_t end = word * 4 + 4 > offset + size ? offset + size : word * 4 + 4;
            T& whole = words_[word];
            uint32_t split = split_of(whole);
            if (end - begin == 4 && !split) {
                visit(whole, begin, 4u);
                continue;
            }
            if (!split) split = divide(whole);
            for (size_t b = begin; b < end; ++b) visit(bytes_[split][b % 4], b, 1u);
        }
    }

   private:
    uint32_t divide(T& whole) {
        bytes_.emplace_back();
        const uint32_t place = uint32_t(bytes_.size() - 1);
        divide_record(whole, bytes_.back(), place);
        return place;
    }

    size_t size_;
    T* words_;
    std::deque<std::array<T, 4>> bytes_;  // addresses stay
};

}  // namespace emu
