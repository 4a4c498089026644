// The pretended device: its last error, its limits.
#pragma once

#include "../include/emulator/api.h"

namespace emu {

void set_error(cudaError_t error);
bool device_lost();  // after a fault, until the process ends
size_t dynamic_shared_limit();
bool is_pinned(const void* address);  // by cudaMallocHost or cudaHostRegister
bool is_global(const void* address);  // device memory, or memory lent by emu_lend_memory

}  // namespace emu
