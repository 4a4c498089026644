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

struct Word {
    static constexpr uint32_t kCell = ~0u, kBytes = ~0u - 1;
    Touch writer, reader;

    bool has_cell() const { return writer.phase == kCell; }
    bool is_split() const { return writer.phase == kBytes; }
    uint32_t place() const { return reader.phase; }  // of the cell, or of the words of its bytes
    void put(uint32_t what, uint32_t place) { writer.phase = what, reader.phase = place; }
};
static_assert(sizeof(Word) == 16, "every word of every allocation costs this");

inline uint32_t split_of(const Word& word) { return word.is_split() ? word.place() : 0; }
void divide_record(Word& whole, std::array<Word, 4>& bytes, uint32_t place);

// What is told of the words of a launch: called at its beginning, at a barrier of the whole grid,
// where a block begins or goes on, and where its threads have passed a barrier.
void words_launch(uint32_t next_phase);
void words_epoch(uint32_t next_phase);
void words_block(uint32_t block, uint32_t first_phase);
void words_phase();
void forget_words();                                    // all of them: their shadows are gone
void forget_words_of(const Word* first, size_t count);  // of a shadow that will be gone

struct Noted {
    bool race;
    bool first_read, first_write;  // by whatever thread, in this launch
};
// Notes an access; where it races, the other side is in *conflict.
Noted touch_word(Word& word, const Accessor& me, Kind kind, std::vector<uint16_t>& moments,
                 Conflict* conflict);

}  // namespace emu
