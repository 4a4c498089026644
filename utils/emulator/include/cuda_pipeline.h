// The C form of a thread's own pipeline of copies: each is there when its thread has waited for it.
#pragma once

#include "cuda/pipeline"
#include "cuda_runtime.h"
#include "emulator/tensor_cores.h"

EMU_INLINE void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zeros = 0,
                                        EMU_HERE) {
    emu_copy_async(to, from, int(bytes - zeros), int(bytes), here);
}
inline void __pipeline_commit() { emu_commit_copies(); }
EMU_INLINE void __pipeline_wait_prior(size_t most, EMU_HERE) {
    emu_wait_for_copies(int(most), here);
}
