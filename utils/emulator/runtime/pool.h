// The CPU cores that run a launch's blocks: the calling OS thread, and helpers that sleep between
// launches. Knows neither what a block does nor why a launch may end early.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>

namespace emu {

struct Launch;

void run_blocks(Launch& launch);  // returns when all have ended
// Blocks of so many threads and bytes of dynamic shared memory that may wait for each other.
uint64_t resident_grid(int threads, size_t shared);

// An OS thread on which a kernel runs now; false where there is none.
bool find_busy_thread(pthread_t* thread);

}  // namespace emu
