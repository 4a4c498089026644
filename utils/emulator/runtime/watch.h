// The diagnosing run: finds races, strays and reads of what nobody wrote, and counts the traffic of
// every line. Blocks run in order on one core; everything it says is the same from run to run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shadow.h"

namespace emu {

class Core;
struct Launch;

bool watching();

// Called by the scheduler.
void watch_launch(const Launch& launch);      // before its first block
void watch_launch_end(const Launch& launch);  // reports hazards and counters
void watch_block();                           // a block begins
void watch_phase();                           // a block barrier was passed by all
void watch_warp_end();                        // the running warp cannot go on for now
void watch_collective(const Core& core, int warp, int kind, uint32_t lanes, uint32_t mask);
// A hazard of two threads' barriers or collectives, each where it waits.
void watch_site(const Core& core, const char* kind, int thread, int other);

// Called by the compiler's callbacks.
void watch_access(Core& core, const void* address, size_t size, Kind kind, const void* pc);

}  // namespace emu
