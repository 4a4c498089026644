// What the threads of a launch did to each word of global memory, in 16 bytes a word.
//
// Nearly every word is written by one thread and read by one, if at all. Of these a Word holds the
// last write and the last read. What does not fit (a second reader, an atomic, fences) has a
// GlobalCell, which is given back when its phase is over, if the rest fits by then.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "shadow.h"

namespace emu {

struct Touch {       // one access
    uint32_t phase;  // 0: none. Counted over all launches: it tells the block and the launch too
    uint16_t instruction;
    uint16_t id : 11, moment : 5;
};

struct GlobalCell;

struct Word {
    static constexpr uint32_t kCell = ~0u, kBytes = ~0u - 1;
    Touch writer;
    union {
        Touch reader;
        GlobalCell* cell;
        uint32_t bytes;  // where the words of its single bytes are
    };

    bool has_cell() const { return writer.phase == kCell; }
    bool is_split() const { return writer.phase == kBytes; }
};
static_assert(sizeof(Word) == 16, "every word of every allocation costs this");

struct GlobalCell : Cell {
    Across across;
    uint32_t launch;  // of the next two, by its first phase
    bool read, written_to;
    Word* home;  // whose it is; null: it is free
};

inline uint32_t split_of(const Word& word) { return word.is_split() ? word.bytes : 0; }
void divide_record(Word& whole, std::array<Word, 4>& bytes, uint32_t place);

// What is told of the words of a launch: called at its beginning, at a barrier of the whole grid,
// where a block begins or goes on, and where its threads have passed a barrier.
void words_launch(uint32_t next_phase);
void words_epoch(uint32_t next_phase);
void words_block(uint32_t block, uint32_t first_phase);
void words_phase();
void forget_words();                                    // all of them: their shadows are gone
void forget_words_of(const Word* first, size_t count);  // of a shadow that will be gone

extern uint32_t launch_first, epoch_first;  // phases

struct Noted {
    bool race;
    bool first_read, first_write;  // by whatever thread, in this launch
};

inline Noted touch_cell(GlobalCell& cell, const Accessor& me, Kind kind,
                        std::vector<uint16_t>& moments, Conflict* conflict) {
    if (__builtin_expect(cell.launch != launch_first, 0)) {
        cell.launch = launch_first;
        cell.read = cell.written_to = false;
    }
    Noted noted{false, reads(kind) && !cell.read, writes(kind) && !cell.written_to};
    cell.read |= reads(kind);
    cell.written_to |= writes(kind);
    noted.race = cell.touch(me, kind, moments, conflict);
    noted.race |= cell.across.touch(epoch_first, me, me.of_block ? kStore : kind, conflict);
    return noted;
}
inline bool written_in_launch(const Word& word) {
    if (!word.has_cell()) return word.writer.phase >= launch_first;
    return word.cell->launch == launch_first && word.cell->written_to;
}
// The last plain store to a word in this launch, by block and thread; block 0: there is none.
Across::Party last_store(const Word& word);
Noted touch_alone(Word& word, const Accessor& me, Kind kind, std::vector<uint16_t>& moments,
                  Conflict* conflict);

// Notes an access; where it races, the other side is in *conflict.
inline Noted touch_word(Word& word, const Accessor& me, Kind kind, std::vector<uint16_t>& moments,
                        Conflict* conflict) {
    if (word.has_cell()) return touch_cell(*word.cell, me, kind, moments, conflict);
    return touch_alone(word, me, kind, moments, conflict);
}

}  // namespace emu
