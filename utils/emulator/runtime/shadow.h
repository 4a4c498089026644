// Who touched each word of memory since the last barrier, and whether two of them raced.
//
// Happens-before, as in emulator semantics: a block barrier orders everything before it with
// everything after; __syncwarp orders the lanes it names; nothing orders two blocks of a launch.
// A cell keeps just enough to answer exactly: the last plain write, and for reads and for atomics
// the lanes of one warp and one thread of another. Threads of different warps are unordered within
// a phase, so one witness is enough there.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace emu {

constexpr uint16_t kNobody = 0xffff;
constexpr uint32_t kNoBlock = 0xffffffffu;

enum Kind : uint8_t { kLoad, kStore, kAtomic };

// The accessing thread. `clock[l]` is the last moment of lane l that this thread has synchronised
// with by __syncwarp; `now` is its own moment, 1 at the start of a phase.
struct Accessor {
    uint32_t block, phase;  // serials: of the block, and of the part between two of its barriers
    uint16_t thread;
    uint16_t instruction;
    uint16_t now;
    const uint16_t* clock;  // 32 lanes; null while the warp has not synchronised in this phase

    unsigned lane() const { return thread % 32; }
    unsigned warp() const { return thread / 32; }
};

struct Conflict {  // the other side of a race
    uint16_t thread, instruction;
    uint32_t block;  // kNoBlock: the accessor's own
    Kind kind;
};

// Threads that read a word, or updated it atomically, in one phase of one block.
struct Several {
    uint16_t first = kNobody, first_instruction = 0;
    uint16_t other = kNobody, other_instruction = 0;  // a thread of another warp than `first`
    uint32_t lanes = 0;                               // of first's warp
    uint32_t moments = 0;  // index of 32 moments, one a lane; 0: all happened at moment 1

    void add(const Accessor& me, std::vector<uint16_t>& pool) {
        if (first == kNobody) {
            first = me.thread;
            first_instruction = me.instruction;
        } else if (first / 32 != me.warp()) {
            if (other == kNobody) other = me.thread, other_instruction = me.instruction;
            return;
        }
        lanes |= 1u << me.lane();
        if (me.now > 1 && !moments) {
            if (pool.empty()) pool.resize(32);
            moments = uint32_t(pool.size() / 32);
            pool.resize(pool.size() + 32, 1);
        }
        if (moments) pool[32 * size_t(moments) + me.lane()] = me.now;
    }

    // A thread that is not ordered before `me`, or kNobody.
    uint16_t unordered(const Accessor& me, const std::vector<uint16_t>& pool, uint16_t* instruction) const {
        if (first == kNobody) return kNobody;
        *instruction = first_instruction;
        if (first / 32 != me.warp()) return first;
        if (other != kNobody) return *instruction = other_instruction, other;
        for (uint32_t rest = lanes & ~(1u << me.lane()); rest; rest &= rest - 1) {
            unsigned lane = unsigned(__builtin_ctz(rest));
            uint16_t moment = moments ? pool[32 * size_t(moments) + lane] : 1;
            if (!me.clock || me.clock[lane] < moment) return uint16_t(me.warp() * 32 + lane);
        }
        return kNobody;
    }
};

struct Cell {
    uint32_t phase = 0;    // of what follows; another phase's is history
    uint32_t written = 0;  // the block that last wrote it, for reads of what nobody wrote
    uint16_t writer = kNobody, writer_instruction = 0, writer_moment = 0;
    Several readers, atomics;

    void enter(const Accessor& me) {
        if (phase == me.phase) return;
        phase = me.phase;
        writer = kNobody;
        readers = Several{};
        atomics = Several{};
    }
    // Notes the access; true where it races, with the other side in *conflict.
    bool touch(const Accessor& me, Kind kind, std::vector<uint16_t>& pool, Conflict* conflict) {
        enter(me);
        bool race = false;
        if (writer != kNobody && writer != me.thread &&
            !(writer / 32 == me.warp() && me.clock && me.clock[writer % 32] >= writer_moment)) {
            *conflict = Conflict{writer, writer_instruction, kNoBlock, kStore};
            race = true;
        }
        uint16_t instruction = 0;
        if (!race && kind != kAtomic) {
            uint16_t thread = atomics.unordered(me, pool, &instruction);
            if (thread != kNobody) *conflict = Conflict{thread, instruction, kNoBlock, kAtomic}, race = true;
        }
        if (!race && kind != kLoad) {
            uint16_t thread = readers.unordered(me, pool, &instruction);
            if (thread != kNobody) *conflict = Conflict{thread, instruction, kNoBlock, kLoad}, race = true;
        }
        if (kind == kLoad) {
            readers.add(me, pool);
        } else {
            written = me.block;
            if (kind == kAtomic) atomics.add(me, pool);
            else writer = me.thread, writer_instruction = me.instruction, writer_moment = me.now;
        }
        return race;
    }
};

// What other blocks of the launch did to a word of global memory.
struct Across {
    uint32_t launch = 0;
    uint32_t writer = kNoBlock, reader = kNoBlock, atomic = kNoBlock;      // blocks: the first of each
    uint32_t reader_other = kNoBlock, atomic_other = kNoBlock;             // and one more
    uint16_t writer_thread, reader_thread, atomic_thread, reader_other_thread, atomic_other_thread;
    uint16_t writer_instruction, reader_instruction, atomic_instruction, reader_other_instruction,
        atomic_other_instruction;

    bool touch(uint32_t this_launch, const Accessor& me, Kind kind, Conflict* conflict) {
        if (launch != this_launch) {
            *this = Across{};
            launch = this_launch;
        }
        bool race = false;
        auto against = [&](uint32_t block, uint16_t thread, uint16_t instruction, Kind other) {
            if (race || block == kNoBlock || block == me.block) return;
            *conflict = Conflict{thread, instruction, block, other};
            race = true;
        };
        against(writer, writer_thread, writer_instruction, kStore);
        if (kind != kAtomic) {
            against(atomic, atomic_thread, atomic_instruction, kAtomic);
            against(atomic_other, atomic_other_thread, atomic_other_instruction, kAtomic);
        }
        if (kind != kLoad) {
            against(reader, reader_thread, reader_instruction, kLoad);
            against(reader_other, reader_other_thread, reader_other_instruction, kLoad);
        }
        auto note = [&](uint32_t& block, uint16_t& thread, uint16_t& instruction) {
            block = me.block;
            thread = me.thread;
            instruction = me.instruction;
        };
        if (kind == kStore) {
            note(writer, writer_thread, writer_instruction);
        } else if (kind == kLoad) {
            if (reader == kNoBlock) note(reader, reader_thread, reader_instruction);
            else if (reader != me.block) note(reader_other, reader_other_thread, reader_other_instruction);
        } else {
            if (atomic == kNoBlock) note(atomic, atomic_thread, atomic_instruction);
            else if (atomic != me.block) note(atomic_other, atomic_other_thread, atomic_other_instruction);
        }
        return race;
    }
};

// Cells for a range of memory, made where it is touched: one a 4-byte word, four where single
// bytes of it are accessed.
template <class T>
class Shadow {
   public:
    explicit Shadow(size_t bytes) : pages_(bytes / 4 / kWords + 1) {}

    // Calls visit(cell, bytes) for each cell that the bytes [offset, offset + size) touch.
    template <class Visit>
    void each(size_t offset, size_t size, Visit visit) {
        for (size_t word = offset / 4, last = (offset + size - 1) / 4; word <= last; ++word) {
            Page& page = at(word / kWords);
            size_t w = word % kWords;
            size_t begin = word * 4 < offset ? offset : word * 4;
            size_t end = word * 4 + 4 > offset + size ? offset + size : word * 4 + 4;
            if (end - begin == 4 && !page.split) {
                visit(page.words[w], 4u);
                continue;
            }
            if (!page.split) page.split = std::make_unique<std::vector<T>[]>(kWords);
            std::vector<T>& bytes = page.split[w];
            if (end - begin == 4 && bytes.empty()) {
                visit(page.words[w], 4u);
                continue;
            }
            if (bytes.empty()) bytes.assign(4, page.words[w]);
            for (size_t b = begin; b < end; ++b) visit(bytes[b % 4], 1u);
        }
    }

   private:
    static constexpr size_t kWords = 1024;
    struct Page {
        std::vector<T> words = std::vector<T>(kWords);
        std::unique_ptr<std::vector<T>[]> split;
    };
    Page& at(size_t i) {
        if (!pages_[i]) pages_[i] = std::make_unique<Page>();
        return *pages_[i];
    }
    std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace emu
