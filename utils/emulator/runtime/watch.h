// The diagnosing run: finds races, accesses out of bounds and reads of what nobody wrote, and
// counts the traffic of every line. Blocks run in order on one core; everything it says is the same
// from run to run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hazard_kinds.h"
#include "requests.h"
#include "shadow.h"
#include "words.h"

namespace emu {

class Core;
struct Launch;
struct Meeting;

extern bool watched __attribute__((visibility("hidden")));
inline bool watching() { return watched; }

// Called by the scheduler.
void watch_thread(Core* core, int thread);    // this one runs from now on; null: none
void watch_launch(const Launch& launch);      // before its first block
void watch_launch_end(const Launch& launch);  // reports hazards and counters
void watch_block();                           // a block begins
void watch_grid_barrier();                    // all threads of the grid have come to it
void watch_block_again(uint32_t serial);      // a block goes on: which watch_serial() was its own
void watch_block_end(uint32_t serial);
void watch_loaded(uint64_t bytes);  // by the running block, from global memory
bool watch_still();                 // whether no thread that spins has seen a change, in many calls
uint32_t watch_serial();            // of the running block
void watch_phase();                 // a block barrier was passed by all
void watch_warp_end();              // the running warp cannot go on for now
void watch_collective(const Core& core, int warp, int kind, uint32_t lanes, uint32_t mask);
// The shuffles of these lanes, each from its source, or from itself where that is -1.
void watch_shuffle(const Core& core, int warp, uint32_t lanes, const int* sources);
// What a shuffle brings from a lane that takes no part. NaN in any floating-point type, and still
// that NaN when something has been added to it: so it can be told where it has got to.
constexpr uint64_t kNobodys = 0xffedffedffedffed;
// A hazard of two threads' barriers or collectives, each where it waits.
void watch_site(const Core& core, const HazardKind& kind, int thread, int other,
                const Meeting* met = nullptr);

// Called by the compiler's callbacks, for the running thread.
void watch_access(const void* address, size_t size, Kind kind, const void* pc);
// Of bytes, in whatever parts: a structure that is copied, or memory by the C library.
void watch_range(const void* address, size_t size, Kind kind, const void* pc);
// What a copy reads or writes at once with the thread that begins it: aligned to `alignment`.
void watch_copied(const void* address, size_t size, size_t alignment, Kind kind, const void* pc);
// The same of a range, by what is no thread's load or store: it is not counted.
void watch_uncounted(const void* address, size_t size, Kind kind, const void* pc);
bool watch_alignment(const void* address, size_t alignment, Kind kind, const void* pc);
void watch_read_only(const void* address, size_t size, const void* pc);
void watch_fence(bool of_the_device);  // __threadfence(), or of the block alone
// Of the running thread: it makes known what it has done so far; and what it has come to know.
void watch_release();
void watch_acquire();
// What it stored is seen by copies and by products of tiles.
void watch_tile_fence();

struct AsyncOperation;
struct Met;
// What an asynchronous operation does to shared memory, and does still; the number of the
// instruction.
uint16_t touch_for(const AsyncOperation& operation, const void* address, size_t size,
                   const uint16_t* known, const void* pc, Met& met);
uint32_t stores_to_tiles();        // so many so far, of all blocks: what is no barrier's own
bool has_fenced(uint32_t fences);  // the running thread, with this number or a later
void touch_again(const AsyncOperation& operation, const void* address, size_t size);
void touch_as_store(const AsyncOperation& operation, const void* address, size_t size);
// What the running thread stored to global memory is seen by copies of tiles, and its copies see
// what others stored; and whether that is so of what a copy of its reads.
void watch_async_fence();
void watch_unfenced(const void* address, size_t size, const void* pc);
// To device memory, while no kernel runs.
void watch_host_access(const void* address, size_t size, Kind kind, const void* pc);

// --- the way of almost every access: a whole word of a shared array, nothing remarkable ----------

constexpr uint32_t kQuantum = 1024;  // requests that one lane may be ahead of its warp

struct Allocation;
struct Coverage;

extern bool scope_of_block;  // of the atomic operation that is noted: it is one for the block alone

struct Instruction {  // a load, store or atomic of the program; one more if it meets both spaces
    uint64_t pc;
    uint16_t id;
    Space space;
    Kind kind;
    unsigned size;
    Pending pending;
    Totals totals;
    // The allocation or shared array it met last, and its cells: it mostly stays in one.
    Allocation* allocation = nullptr;
    Shadow<Word>* shadow = nullptr;
    const char* shadow_first = nullptr;  // the address that it begins with
    // The same once more, where all of it is written, so that reads need not be looked at closely.
    const char* global = nullptr;
    size_t global_bytes = 0;  // 0: not known
    Word* words = nullptr;
    Coverage* coverage = nullptr;
    const char* array = nullptr;
    size_t array_bytes = 0;
    uint32_t array_block = 0;  // shared arrays belong to one block
    Cell* cells = nullptr;
    bool guess = false;  // a plain load whose value a compare-and-swap went on to expect
};

struct Running {  // the thread that runs, in a watched launch
    Core* core;   // null outside of one
    Accessor me;  // without an instruction
    unsigned lane;
    uint32_t bit;
    // Whether its last access was, and was reported, and in the next bit the one before: a copy is
    // told of as a store and a load before either happens.
    unsigned misaligned;
    const void* pc;   // of the access that is being looked at; null: none is
    uint32_t* steps;  // basic blocks that it has begun
    struct Bucket {
        uint64_t key;
        Instruction* instruction;
    } table[1024];  // instructions by address, as a cache
};
extern Running running __attribute__((visibility("hidden")));

// The running thread begins a basic block.
inline void watch_step() {
    if (running.core) ++*running.steps;
}

inline uint64_t instruction_key(const void* pc, Space space) {
    return uint64_t(pc) * 4 + space + 1;
}
inline Running::Bucket& instruction_bucket(uint64_t key) {
    return running.table[key * 0x9e3779b97f4a7c15ull >> 54];
}

// Notes the running thread's next execution of a load, where that makes no new request.
__attribute__((always_inline)) inline bool joins_request(Instruction& in, const void* address) {
    Pending& pending = in.pending;
    const uint32_t row = pending.count[running.lane];
    if (row >= pending.used || row + 1 >= kQuantum) return false;
    pending.count[running.lane] = row + 1;
    Request& request = pending.rows[row];
    request.lanes |= running.bit;
    request.address[running.lane] = uint64_t(address);
    return true;
}

// Notes a read among reads alone, all of a warp's by one instruction.
__attribute__((always_inline)) inline bool joins_readers(Several& readers, const Instruction& in) {
    if (!readers.first || readers.moments || readers.first_moment != 1) return false;
    if (warp_of(readers.first) == warp_of(running.me.id)) {
        if (readers.first_instruction != in.id) return false;
        readers.lanes |= running.bit;
    } else if (!readers.other) {
        readers.other = running.me.id;
        readers.other_instruction = in.id;
        readers.other_moment = 1;
    }
    return true;
}

// False where the access has to take the long way; what has been noted then may be noted again.
__attribute__((always_inline)) inline bool watch_read_shared_word(const void* address,
                                                                  const void* pc) {
    const uint64_t key = instruction_key(pc, kShared);
    const Running::Bucket& bucket = instruction_bucket(key);
    if (bucket.key != key || running.me.now != 1) return false;
    Instruction& in = *bucket.instruction;
    const size_t offset = size_t(static_cast<const char*>(address) - in.array);
    if (in.array_block != running.me.block || offset >= in.array_bytes || offset % 4) return false;
    Cell& cell = in.cells[offset / 4];
    if (cell.written != running.me.block || cell.split) return false;
    if (cell.phase != running.me.phase) {
        cell.phase = running.me.phase;
        cell.writer = cell.atomics.first = cell.atomics.other = 0;
        cell.atomics.lanes = cell.atomics.moments = 0;
        cell.updated = false;
        cell.readers = Several{running.me.id, in.id, 0, 0, 0, 1, running.bit, 0};
    } else if (cell.writer || cell.atomics.first || !joins_readers(cell.readers, in)) {
        return false;
    }
    return joins_request(in, address);
}

// Of a word that this block, and others, have read before in this launch, and nobody else touched.
__attribute__((always_inline)) inline bool watch_read_global_word(const void* address,
                                                                  const void* pc) {
    const uint64_t key = instruction_key(pc, kGlobal);
    const Running::Bucket& bucket = instruction_bucket(key);
    if (bucket.key != key || running.me.now != 1) return false;
    Instruction& in = *bucket.instruction;
    const size_t offset = size_t(static_cast<const char*>(address) - in.global);
    if (offset >= in.global_bytes || offset % 4) return false;
    const Word& word = in.words[offset / 4];
    if (!word.has_cell()) return false;
    GlobalCell& cell = *word.cell;
    const Across& across = cell.across;
    if (cell.phase != running.me.phase || across.epoch != epoch_first || cell.writer ||
        cell.atomics.first || across.writer.block || across.atomic.block ||
        (across.reader.block != running.me.block && across.reader_other.block != running.me.block))
        return false;
    return joins_readers(cell.readers, in) && joins_request(in, address);
}

}  // namespace emu
