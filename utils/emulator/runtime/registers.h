// Variables of threads that stand for registers a product reads and writes: who uses them before it
// is over, or without a fence after that, is told so. In a watched launch.
#pragma once

#include <cstddef>

#include "shadow.h"

namespace emu {

class Core;

void registers_block();                                                            // a block begins
void hold_registers(int thread, const void* first, size_t count, const void* pc);  // by `pc`
void release_registers(int thread, const void* first);  // the product is over
void neglect_registers(int warp_thread);  // its warp has waited, and not for what holds them

extern bool any_registers;
// An access of the running thread to a variable of its own.
void watch_register(Core& core, const void* address, size_t size, Kind kind, const void* pc);

void touch_registers(Core& core, int thread, const void* registers);

}  // namespace emu
