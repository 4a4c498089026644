// Host memory that was pinned, so that kernels may use it; and copies.
#pragma once

#include <atomic>
#include <cstddef>

#include "../include/emulator/api.h"

namespace emu {

extern bool any_pinned __attribute__((visibility("hidden")));
extern std::atomic<long> objects;     // streams, events, textures and pools that are not destroyed
bool is_pinned(const void* address);  // by cudaMallocHost or cudaHostRegister
void copy_now(void* to, const void* from, size_t bytes);
// As cudaMemcpy2D does, which `caller` has called.
cudaError_t copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                      size_t height, cudaMemcpyKind kind, const char* caller);

}  // namespace emu
