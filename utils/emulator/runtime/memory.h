// Host memory that was pinned, so that kernels may use it.
#pragma once

namespace emu {

extern bool any_pinned __attribute__((visibility("hidden")));
bool is_pinned(const void* address);  // by cudaMallocHost or cudaHostRegister

}  // namespace emu
