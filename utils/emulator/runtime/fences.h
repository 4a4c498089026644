// Threads that are ordered after all: one writes, fences and then updates a word atomically;
// another updates that word later, and what comes after it is after the write.
//
// This is how the last block of a launch finds out that it is the last, and how locks work. The
// later thread, too, needs a fence between its atomic and a plain load, which may else come from a
// stale line of its cache. A barrier of its warp or block between the two counts as one, as in
// NVIDIA's samples; a store waits anyway for the condition that it depends on. A thread that has
// learned so of others hands that on with a fence and an atomic of its own: how chains of blocks
// and barriers of the grid work. Among the threads of a block __threadfence_block() will do; there,
// not modelled is order handed on through a third thread.
#pragma once

#include <cstdint>

#include "shadow.h"

namespace emu {

void fences_launch();                // a launch begins
void fences_block(uint32_t serial);  // a block begins, or goes on
void fences_block_end(uint32_t serial);
void fences_phase();                          // its threads have passed a barrier
void fence(const Accessor& me, int threads);  // __threadfence(); of so many in the block
void fence_of_block(const Accessor& me);      // __threadfence_block(), or more; `now` is after it
void fence_atomic(const void* address, const Accessor& me, Kind kind);

}  // namespace emu
