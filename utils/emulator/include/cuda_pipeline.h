// The C form of a thread's own pipeline of copies: each is done when its call returns.
#pragma once

#include "cuda/pipeline"
#include "cuda_runtime.h"

EMU_INLINE void __pipeline_memcpy_async(void* to, const void* from, size_t bytes,
                                        size_t zeros = 0) {
    emu::copy_share(to, from, bytes - zeros, 0, 1);
    for (size_t i = bytes - zeros; i < bytes; ++i) static_cast<char*>(to)[i] = 0;
}
inline void __pipeline_commit() {}
inline void __pipeline_wait_prior(size_t) {}
