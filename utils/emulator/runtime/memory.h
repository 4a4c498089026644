// Host memory that was pinned, so that kernels may use it; and copies.
#pragma once

#include <cstddef>

namespace emu {

extern bool any_pinned __attribute__((visibility("hidden")));
bool is_pinned(const void* address);  // by cudaMallocHost or cudaHostRegister
void copy_now(void* to, const void* from, size_t bytes);

}  // namespace emu
