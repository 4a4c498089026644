// kernels/include/tensor_cores.cuh without a GPU: what its functions do, and what they ask of
// memory and of the other lanes.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "emulator/warp.h"

enum EmuTensorType { EMU_F16, EMU_BF16, EMU_TF32 };

extern "C" {
void emu_load_matrices(unsigned* matrices, const void* row, int turned, EmuSite site);
void emu_mma(int type, float* d, const void* a, const void* b, EmuSite site);
void emu_copy_async(void* to, const void* from, int bytes, int room, EmuSite site);
void emu_commit_copies();
void emu_wait_for_copies(int most, EmuSite site);
unsigned emu_shared_address(const void* pointer, EmuSite site);
}

EMU_INLINE unsigned shared_address(const void* pointer, EMU_HERE) {
    return emu_shared_address(pointer, here);
}

EMU_INLINE void load_matrices(unsigned (&matrices)[4], const void* row, EMU_HERE) {
    emu_load_matrices(matrices, row, 0, here);
}
EMU_INLINE void load_transposed(unsigned (&matrices)[4], const void* row, EMU_HERE) {
    emu_load_matrices(matrices, row, 1, here);
}
EMU_INLINE void mma_f16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], EMU_HERE) {
    emu_mma(EMU_F16, d, a, b, here);
}
EMU_INLINE void mma_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], EMU_HERE) {
    emu_mma(EMU_BF16, d, a, b, here);
}
EMU_INLINE void mma_tf32(float (&d)[4], const float (&a)[4], const float (&b)[2], EMU_HERE) {
    emu_mma(EMU_TF32, d, a, b, here);
}

EMU_INLINE void copy_async(void* to, const void* from, int bytes = 16, EMU_HERE) {
    emu_copy_async(to, from, bytes, 16, here);
}
inline void commit_copies() { emu_commit_copies(); }
template <int MOST>
EMU_INLINE void wait_for_copies(EMU_HERE) {
    emu_wait_for_copies(MOST, here);
}
