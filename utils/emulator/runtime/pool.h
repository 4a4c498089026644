// The CPU cores that run a launch's blocks: the calling OS thread, and helpers that sleep between
// launches. Knows neither what a block does nor why a launch may end early.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace emu {

struct Launch;
class Core;

void run_blocks(Launch& launch);  // returns when all have ended
// The core that runs on the calling OS thread from now on: its own, or one beside that.
void take_seat(Core* core);
// So many cores, each with room for the launch's blocks, until the next call.
std::vector<std::unique_ptr<Core>>& cores_for(const Launch& launch, uint64_t count);
// Blocks of so many threads and bytes of dynamic shared memory that may wait for each other.
uint64_t resident_grid(int threads, size_t shared);
uint64_t most_resident(int threads, size_t shared);  // on a GPU larger than the pretended one

// An OS thread on which a kernel runs now; false where there is none.
bool find_busy_thread(pthread_t* thread);

}  // namespace emu
