// The records of words, and how they grow into cells and shrink again.
#include "words.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace emu {

uint32_t launch_first = 1, epoch_first = 1;

namespace {

class Cells {
   public:
    GlobalCell& take(Word* home) {
        if (free_.empty()) add_chunk();
        GlobalCell& cell = *free_.back();
        free_.pop_back();
        cell = GlobalCell{};
        cell.home = home;
        return cell;
    }
    void give_back(GlobalCell& cell) {
        cell.home = nullptr;
        free_.push_back(&cell);
    }
    size_t used() const { return chunks_.size() * kChunk - free_.size(); }
    // Gives back the cells for which drop(cell) is true.
    template <class Drop>
    void sweep(Drop drop) {
        for (auto& chunk : chunks_)
            for (size_t i = 0; i < kChunk; ++i)
                if (chunk[i].home && drop(chunk[i])) give_back(chunk[i]);
    }
    void clear() { chunks_.clear(), free_.clear(); }

   private:
    static constexpr size_t kChunk = 4096;
    void add_chunk() {
        chunks_.push_back(std::make_unique<GlobalCell[]>(kChunk));
        for (size_t i = kChunk; i; --i) free_.push_back(&chunks_.back()[i - 1]);
    }
    std::vector<std::unique_ptr<GlobalCell[]>> chunks_;
    std::vector<GlobalCell*> free_;
};

constexpr size_t kFewCells = 1 << 16;  // not worth looking for those that may go
constexpr uint16_t kMostMoments = 31;  // that a Touch can tell apart

Cells cells;
size_t sweep_at = kFewCells;
std::vector<std::pair<uint32_t, uint32_t>> visits;  // first phase, block; in the order of phases

uint32_t block_of(uint32_t phase) {
    auto after = std::upper_bound(visits.begin(), visits.end(), std::pair(phase, ~0u));
    return std::prev(after)->second;
}
uint32_t first_phase() { return visits.back().first; }  // of the running block

bool counts(const Touch& touch) { return touch.phase >= epoch_first; }

Across::Party party_of(const Touch& touch) {
    return {block_of(touch.phase), touch.phase, touch.id, touch.instruction, 0};
}

Touch touch_of(const Accessor& me) {
    return Touch{me.phase, me.instruction, me.id, uint16_t(me.now & kMostMoments)};
}

bool against(const Touch& touch, Kind kind, const Accessor& me, Conflict* conflict) {
    if (!counts(touch)) return false;
    if (touch.phase < first_phase()) return Across::against(party_of(touch), kind, me, conflict);
    if (touch.phase != me.phase || ordered_within(touch.id, touch.moment, me)) return false;
    *conflict = Conflict{touch.id, touch.instruction, 0, kind, touch.moment};
    return true;
}

// Whether the word can note a read without forgetting another.
bool takes_reader(const Touch& reader, const Accessor& me) {
    if (!counts(reader)) return true;
    if (reader.phase == me.phase) return reader.id == me.id;
    return reader.phase >= first_phase();
}

GlobalCell& grow(Word& word, std::vector<uint16_t>& moments) {
    const Word old = word;
    GlobalCell& cell = cells.take(&word);
    cell.launch = launch_first;
    cell.read = old.reader.phase >= launch_first;
    cell.written_to = old.writer.phase >= launch_first;
    cell.across.epoch = epoch_first;
    if (counts(old.writer)) {
        cell.across.writer = party_of(old.writer);
        cell.phase = old.writer.phase;
    }
    if (counts(old.reader)) {
        cell.across.reader = party_of(old.reader);
        cell.phase = std::max(cell.phase, old.reader.phase);
    }
    if (cell.phase && old.writer.phase == cell.phase) {
        cell.writer = old.writer.id;
        cell.writer_instruction = old.writer.instruction;
        cell.writer_moment = old.writer.moment;
    }
    if (cell.phase && old.reader.phase == cell.phase)
        cell.readers.add(Accessor{0, cell.phase, old.reader.id, old.reader.instruction,
                                  old.reader.moment, nullptr},
                         moments);
    word.writer.phase = Word::kCell;
    word.cell = &cell;
    return cell;
}

// What of a cell matters when its phase is over, as a Word, where it fits.
bool shrink(GlobalCell& cell) {
    const Across& a = cell.across;
    Word word{};
    if (cell.launch == launch_first) {
        const bool counts = a.epoch == epoch_first;
        if (counts &&
            (a.atomic.block || a.reader_other.block || a.writer.fences || a.reader.fences))
            return false;
        // A touch of an earlier epoch orders nothing, and is still one of this launch.
        if (cell.written_to) word.writer = Touch{launch_first, 0, 0, 1};
        if (cell.read) word.reader = Touch{launch_first, 0, 0, 1};
        if (counts && a.writer.block)
            word.writer = Touch{a.writer.phase, a.writer.instruction, a.writer.id, 1};
        if (counts && a.reader.block)
            word.reader = Touch{a.reader.phase, a.reader.instruction, a.reader.id, 1};
    }
    *cell.home = word;
    return true;
}

}  // namespace

Noted touch_alone(Word& word, const Accessor& me, Kind kind, std::vector<uint16_t>& moments,
                  Conflict* conflict) {
    if (is_atomic(kind) || me.now > kMostMoments || fences_passed[me.id - 1] ||
        (kind == kLoad && !takes_reader(word.reader, me)))
        return touch_cell(grow(word, moments), me, kind, moments, conflict);
    Noted noted{against(word.writer, kStore, me, conflict), false, false};
    if (kind == kLoad) {
        noted.first_read = word.reader.phase < launch_first;
        word.reader = touch_of(me);
    } else {
        noted.race |= against(word.reader, kLoad, me, conflict);
        noted.first_write = word.writer.phase < launch_first;
        word.writer = touch_of(me);
    }
    return noted;
}

Across::Party last_store(const Word& word) {
    if (!word.has_cell()) return counts(word.writer) ? party_of(word.writer) : Across::Party{};
    const Across& across = word.cell->across;
    return across.epoch == epoch_first ? across.writer : Across::Party{};
}

void divide_record(Word& whole, std::array<Word, 4>& bytes, uint32_t place) {
    if (whole.has_cell()) {
        GlobalCell& old = *whole.cell;
        for (Word& byte : bytes) {
            GlobalCell& cell = cells.take(&byte);
            cell = old;
            cell.home = &byte;
            byte.writer.phase = Word::kCell;
            byte.cell = &cell;
        }
        cells.give_back(old);
    } else {
        bytes.fill(whole);
    }
    whole.writer.phase = Word::kBytes;
    whole.bytes = place;
}

void words_launch(uint32_t next_phase) {
    launch_first = next_phase;
    words_epoch(next_phase);
}
void words_epoch(uint32_t next_phase) {
    epoch_first = next_phase;
    visits.clear();
}
void words_block(uint32_t block, uint32_t first_phase) { visits.emplace_back(first_phase, block); }

void words_phase() {
    if (cells.used() < sweep_at) return;
    cells.sweep(shrink);
    sweep_at = std::max(kFewCells, 2 * cells.used());
}

void forget_words() {
    cells.clear();
    sweep_at = kFewCells;
}
void forget_words_of(const Word* first, size_t count) {
    cells.sweep(
        [=](const GlobalCell& cell) { return cell.home >= first && cell.home < first + count; });
}

}  // namespace emu
