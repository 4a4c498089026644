// The device side of kernels/include/hopper.cuh without a GPU.
#pragma once

#include <cuda.h>

#include "emulator/tensor_cores.h"

using Barrier = unsigned long long;  // the emulator keeps what it counts elsewhere

extern "C" {
void emu_barrier_init(void* barrier, int arrivals, EmuSite site);
void emu_barrier_arrive(void* barrier, int bytes, EmuSite site);  // bytes: that it announces
void emu_barrier_wait(void* barrier, int parity, EmuSite site);
void emu_load_tile(void* tile, const CUtensorMap* map, int col, int row, void* barrier,
                   EmuSite site);
void emu_load_bytes(void* to, const void* from, int bytes, void* barrier, EmuSite site);
void emu_store_tile(const CUtensorMap* map, const void* tile, int col, int row, EmuSite site);
void emu_commit_stores();
void emu_wait_for_stores(int most, EmuSite site);
void emu_check_map(const CUtensorMap* map, EmuSite site);
void emu_fence_async();
// `fragment` holds rows of a in registers; where it is null, a is the descriptor of a tile. `mn`:
// rows of b lie along N.
void emu_wgmma(int type, int n, float* d, uint64_t a, const unsigned* fragment, uint64_t b, int mn,
               int add, EmuSite site);
void emu_wgmma_fence(EmuSite site);
void emu_wgmma_commit(EmuSite site);
void emu_wgmma_wait(int most, EmuSite site);
void emu_sync_some(int name, int threads, EmuSite site);
void emu_fence_async_global();
void emu_set_registers(int count, EmuSite site);  // of each thread of the warp
void emu_barrier_arrive_at(void* barrier, int rank, EmuSite site);
void emu_load_tile_multicast(void* tile, const CUtensorMap* map, int col, int row, void* barrier,
                             unsigned blocks, EmuSite site);
int emu_cluster_rank();
void emu_cluster_sync(EmuSite site);
}

EMU_INLINE void barrier_init(Barrier* barrier, int arrivals, EMU_HERE) {
    emu_barrier_init(barrier, arrivals, here);
}
inline void fence_barriers() {}
EMU_INLINE void barrier_arrive(Barrier* barrier, EMU_HERE) { emu_barrier_arrive(barrier, 0, here); }
EMU_INLINE void barrier_arrive_expect(Barrier* barrier, int bytes, EMU_HERE) {
    emu_barrier_arrive(barrier, bytes, here);
}
EMU_INLINE void barrier_wait(Barrier* barrier, int parity, EMU_HERE) {
    emu_barrier_wait(barrier, parity, here);
}

EMU_INLINE void load_tile(void* tile, const CUtensorMap* map, int col, int row, Barrier* barrier,
                          EMU_HERE) {
    emu_load_tile(tile, map, col, row, barrier, here);
}
EMU_INLINE void load_bytes(void* to, const void* from, int bytes, Barrier* barrier, EMU_HERE) {
    emu_load_bytes(to, from, bytes, barrier, here);
}
EMU_INLINE void store_tile_async(const CUtensorMap* map, const void* tile, int col, int row,
                                 EMU_HERE) {
    emu_store_tile(map, tile, col, row, here);
}
inline void commit_stores() { emu_commit_stores(); }
template <int MOST>
EMU_INLINE void wait_for_stores(EMU_HERE) {
    emu_wait_for_stores(MOST, here);
}
inline void fence_async() { emu_fence_async(); }
inline void fence_async_global() { emu_fence_async_global(); }
inline void prefetch(const CUtensorMap* map, EMU_HERE) { emu_check_map(map, here); }

EMU_INLINE unsigned address_in_shared(const void* pointer, EMU_HERE) {
    return emu_shared_address(pointer, here);
}
EMU_INLINE unsigned long long make_descriptor(const void* tile, EMU_HERE) {
    unsigned long long address = (address_in_shared(tile, here) & 0x3ffff) >> 4;
    return address | 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}
EMU_INLINE unsigned long long make_descriptor_mn(const void* tile, int chunk, EMU_HERE) {
    unsigned long long address = (address_in_shared(tile, here) & 0x3ffff) >> 4;
    return address | (unsigned long long)(chunk >> 4) << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}
EMU_INLINE void wgmma_fence(EMU_HERE) { emu_wgmma_fence(here); }
EMU_INLINE void wgmma_commit(EMU_HERE) { emu_wgmma_commit(here); }
template <int MOST>
EMU_INLINE void wgmma_wait(EMU_HERE) {
    emu_wgmma_wait(MOST, here);
}
#define EMU_WGMMA(name, type, registers)                                                    \
    EMU_INLINE void name(float (&d)[registers], unsigned long long a, unsigned long long b, \
                         int add, EMU_HERE) {                                               \
        emu_wgmma(type, 2 * registers, d, a, nullptr, b, 0, add, here);                     \
    }
#define EMU_WGMMAS(name, type) \
    EMU_WGMMA(name, type, 32)  \
    EMU_WGMMA(name, type, 64)  \
    EMU_WGMMA(name, type, 128)
EMU_WGMMAS(wgmma_f16, EMU_F16)
EMU_WGMMAS(wgmma_bf16, EMU_BF16)
EMU_WGMMAS(wgmma_tf32, EMU_TF32)
#undef EMU_WGMMAS
#undef EMU_WGMMA
#define EMU_WGMMA(name, type, mn)                                                             \
    template <int REGISTERS>                                                                  \
    EMU_INLINE void name(float (&d)[REGISTERS], const unsigned (&a)[4], unsigned long long b, \
                         int add, EMU_HERE) {                                                 \
        emu_wgmma(type, 2 * REGISTERS, d, 0, a, b, mn, add, here);                            \
    }
EMU_WGMMA(wgmma_f16, EMU_F16, 0)
EMU_WGMMA(wgmma_bf16, EMU_BF16, 0)
EMU_WGMMA(wgmma_f16_mn, EMU_F16, 1)
#undef EMU_WGMMA

template <int N>
EMU_INLINE void fewer_registers(EMU_HERE) {
    static_assert(N % 8 == 0 && 24 <= N && N <= 256, "a multiple of 8 from 24 to 256");
    emu_set_registers(N, here);
}
template <int N>
EMU_INLINE void more_registers(EMU_HERE) {
    static_assert(N % 8 == 0 && 24 <= N && N <= 256, "a multiple of 8 from 24 to 256");
    emu_set_registers(N, here);
}
EMU_INLINE void sync_some(int name, int threads, EMU_HERE) { emu_sync_some(name, threads, here); }

EMU_INLINE void barrier_arrive_at(Barrier* barrier, int rank, EMU_HERE) {
    emu_barrier_arrive_at(barrier, rank, here);
}
EMU_INLINE void load_tile_multicast(void* tile, const CUtensorMap* map, int col, int row,
                                    Barrier* barrier, unsigned short blocks, EMU_HERE) {
    emu_load_tile_multicast(tile, map, col, row, barrier, blocks, here);
}
inline int cluster_rank() { return emu_cluster_rank(); }
EMU_INLINE void cluster_sync(EMU_HERE) { emu_cluster_sync(here); }
