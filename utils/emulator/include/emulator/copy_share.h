// One thread's share of a copy by several, in the widest pieces that both sides are aligned for.
#pragma once

#include "emulator/runtime.h"

namespace emu {

template <class Piece>
EMU_INLINE void copy_pieces(void* to, const void* from, size_t bytes, unsigned rank,
                            unsigned threads) {
    for (size_t i = rank; i < bytes / sizeof(Piece); i += threads)
        static_cast<Piece*>(to)[i] = static_cast<const Piece*>(from)[i];
}
EMU_INLINE void copy_share(void* to, const void* from, size_t bytes, unsigned rank,
                           unsigned threads) {
    const size_t all = size_t(to) | size_t(from) | bytes;
    if (all % 16 == 0) copy_pieces<uint4>(to, from, bytes, rank, threads);
    else if (all % 8 == 0) copy_pieces<uint2>(to, from, bytes, rank, threads);
    else if (all % 4 == 0) copy_pieces<unsigned>(to, from, bytes, rank, threads);
    else copy_pieces<char>(to, from, bytes, rank, threads);
}

}  // namespace emu

namespace cuda {

enum thread_scope {
    thread_scope_system,
    thread_scope_device,
    thread_scope_block,
    thread_scope_thread = 10
};
template <size_t Alignment>
struct aligned_size_t {
    static constexpr size_t align = Alignment;
    size_t value;
    constexpr explicit aligned_size_t(size_t bytes) : value(bytes) {}
    constexpr operator size_t() const { return value; }
};

}  // namespace cuda
