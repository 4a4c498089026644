// What copies, stores and products of tiles do to shared memory while the threads that began them
// go on, in a watched launch: nobody may touch what they write, or write what they read, before it
// is known to be over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

#include "order.h"
#include "watch.h"

namespace emu {

struct Part {  // of shared memory
    const void* address;
    size_t bytes;
};

// What an operation that reads has met, and had waited for: whoever has waited for it, too, reads
// the same without a hazard while nothing is stored.
struct Met {
    struct Store {
        uint16_t party, moment;
    };
    std::vector<Store> stores;  // of this phase
    uint32_t fences = 0;  // threads' own need a fence of the reader's with this number or a later
    bool clean = true;    // no hazard, and nothing that this cannot say
};

struct BlockOperations;

struct AsyncOperation {
    uint16_t party = 0, moment = 0;
    Kind kind;        // what it does to shared memory
    uint16_t thread;  // whose id: it began this
    uint16_t began;   // at which of its moments
    uint32_t phase;   // and in which phase
    uint16_t instruction = 0;
    bool committed = false, waited_past = false;  // its thread waited, but not for this operation
    std::vector<Part> parts;
    BlockOperations* block;                      // whose it is one of
    std::list<AsyncOperation*>::iterator place;  // among those that are under way
};

void operations_block(uint32_t serial);      // a block begins, or goes on
void operations_block_end(uint32_t serial);  // it has ended
void operations_phase();
// The running thread begins something at `pc`: it is told of where it conflicts. `clock`: what is
// over for it, if that is not what is over for the running thread. `met`: what a load has met.
// Null where nobody watches.
AsyncOperation* begin_operation(uint16_t party, uint16_t moment, Kind kind, const void* pc,
                                std::vector<Part> parts, const Clock* clock = nullptr,
                                Met* met = nullptr);
void end_operation(AsyncOperation* operation);  // it touches nothing any more; who waits for it
                                                // shall learn() of it
// The same of cp.async: what it brought is as if its thread had stored it now.
void end_as_stores(AsyncOperation* operation);

// Of an access that conflicts with an asynchronous operation, or of one that does: what that is
// called, and in `conflict` the thread in place of the party.
const HazardKind& name_conflict(const Accessor& me, Kind kind, Conflict* conflict);

}  // namespace emu
