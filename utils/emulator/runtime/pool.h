// The CPU cores that run a launch's blocks: the calling OS thread, and helpers that sleep between
// launches. Knows neither what a block does nor why a launch may end early.
#pragma once

#include <pthread.h>

namespace emu {

struct Launch;

void run_blocks(Launch& launch);  // returns when all have ended

// An OS thread on which a kernel runs now; false where there is none.
bool find_busy_thread(pthread_t* thread);

}  // namespace emu
