// Copies between pinned host memory and the device that the host does not wait for.
//
// On a GPU such a copy is made at some time between its call and the host's wait. Here one to the
// host is made at the host's next call of CUDA's: who looks before gets what was there. One from
// the host is made at once; what it read is kept in mind, and may not be changed before the host
// waits.
#pragma once

#include <cstddef>

namespace emu {

void copy_pinned(void* to, const void* from, size_t bytes, const void* pc);  // of the call
void finish_copies();  // before anything else that the host begins
// By a kernel or a copy, in the order of its stream.
void pinned_memory_may_change();
void host_has_waited();  // also finishes copies

}  // namespace emu
