// Two stores to one place are a race, and a harmless one where both store the same value. A store
// is told of before it happens: so what it stores is looked at when the next one is told of.
#pragma once

#include "watch.h"

namespace emu {

// The running thread's store over that of `other`, on these bytes.
void maybe_benign_race(Core& core, const Instruction& in, const void* address,
                       const Conflict& other, const char* first, size_t bytes);
void settle_benign_race();  // before anything else is stored, or another thread runs

}  // namespace emu
