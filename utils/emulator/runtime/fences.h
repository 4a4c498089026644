// Blocks that are ordered after all: one thread writes, fences and then updates a word atomically;
// another block's thread updates that word later, and what comes after it is after the write.
//
// This is how the last block of a launch finds out that it is the last, and how locks work. Taken
// to be enough on the later side is the atomic alone, as NVIDIA's samples do. Not modelled: fences
// among the threads of one block, and order handed on through a third block.
#pragma once

#include <cstdint>

#include "shadow.h"

namespace emu {

void fences_launch();                         // a launch begins
void fences_block();                          // a block begins
void fence(const Accessor& me, int threads);  // __threadfence(); of so many in the block
void fence_atomic(const void* address, const Accessor& me, Kind kind);

}  // namespace emu
