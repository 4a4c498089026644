// Cooperative groups: the thread block, tiles of a warp, coalesced threads.
#pragma once

#include "cuda_runtime.h"

namespace cooperative_groups {

class thread_block {
   public:
    static void sync(emu::Here here = emu::Here()) { emu_barrier(EMU_BARRIER_PLAIN, 0, here); }
    static unsigned thread_rank() { return emu::linear_thread(); }
    static dim3 group_index() { return blockIdx; }
    static dim3 thread_index() { return threadIdx; }
    static dim3 dim_threads() { return blockDim; }
    static dim3 group_dim() { return blockDim; }
    static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned size() { return num_threads(); }
};
inline thread_block this_thread_block() { return {}; }

class grid_group {
   public:
    static unsigned long long thread_rank() {
        return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
    }
    static unsigned long long block_rank() {
        return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
    }
    static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
    static unsigned long long num_threads() { return num_blocks() * thread_block::num_threads(); }
    static unsigned long long size() { return num_threads(); }
    static dim3 dim_blocks() { return gridDim; }
    static dim3 block_index() { return blockIdx; }
    // No sync(): blocks run one after the other, so a barrier over the grid cannot be had.
};
inline grid_group this_grid() { return {}; }

// Lanes of one warp, in ascending order.
class lanes_group {
   public:
    explicit lanes_group(unsigned mask) : mask_(mask) {}
    unsigned size() const { return unsigned(__popc(mask_)); }
    unsigned num_threads() const { return size(); }
    unsigned thread_rank() const { return unsigned(__popc(mask_ & ((1u << emu::lane()) - 1))); }
    void sync(emu::Here here = emu::Here()) const { emu_collective(EMU_SYNCWARP, mask_, 0, 0, here); }

    template <class T>
    T shfl(T value, int rank, emu::Here here = emu::Here()) const {
        return emu::shuffle(mask_, value, lane_of(rank % int(size())), here);
    }
    template <class T>
    T shfl_down(T value, unsigned delta, emu::Here here = emu::Here()) const {
        int rank = int(thread_rank() + delta);
        return emu::shuffle(mask_, value, rank < int(size()) ? lane_of(rank) : -1, here);
    }
    template <class T>
    T shfl_up(T value, unsigned delta, emu::Here here = emu::Here()) const {
        int rank = int(thread_rank()) - int(delta);
        return emu::shuffle(mask_, value, rank >= 0 ? lane_of(rank) : -1, here);
    }
    template <class T>
    T shfl_xor(T value, unsigned lanes, emu::Here here = emu::Here()) const {
        int rank = int(thread_rank() ^ lanes);
        return emu::shuffle(mask_, value, rank < int(size()) ? lane_of(rank) : -1, here);
    }
    unsigned ballot(int predicate, emu::Here here = emu::Here()) const {
        return packed(__ballot_sync(mask_, predicate, here));
    }
    int any(int predicate, emu::Here here = emu::Here()) const { return __any_sync(mask_, predicate, here); }
    int all(int predicate, emu::Here here = emu::Here()) const { return __all_sync(mask_, predicate, here); }
    template <class T>
    unsigned match_any(T value, emu::Here here = emu::Here()) const {
        return packed(__match_any_sync(mask_, value, here));
    }
    template <class T>
    unsigned match_all(T value, int& predicate, emu::Here here = emu::Here()) const {
        return packed(__match_all_sync(mask_, value, &predicate, here));
    }
    unsigned emu_mask() const { return mask_; }

   private:
    int lane_of(int rank) const {
        unsigned rest = mask_;
        for (; rank > 0; --rank) rest &= rest - 1;
        return __builtin_ctz(rest);
    }
    // A mask over the warp's lanes as one over the group's ranks.
    unsigned packed(unsigned lanes) const {
        unsigned result = 0, rank = 0;
        for (unsigned rest = mask_; rest; rest &= rest - 1, ++rank)
            result |= (lanes >> __builtin_ctz(rest) & 1) << rank;
        return result;
    }
    unsigned mask_;
};

class coalesced_group : public lanes_group {
   public:
    using lanes_group::lanes_group;
};
inline coalesced_group coalesced_threads(emu::Here here = emu::Here()) {
    return coalesced_group(emu_active_mask(here));
}

namespace detail {
inline unsigned tile_mask(unsigned size) {
    unsigned lanes = size >= 32 ? 0xffffffffu : (1u << size) - 1;
    return lanes << (unsigned(emu::lane()) & ~(size - 1) & 31);
}
}  // namespace detail

template <unsigned Size, class Parent = thread_block>
class thread_block_tile : public lanes_group {
    static_assert(Size && Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");

   public:
    thread_block_tile() : lanes_group(detail::tile_mask(Size)) {}
    static constexpr unsigned size() { return Size; }
    static constexpr unsigned num_threads() { return Size; }
    static unsigned thread_rank() { return unsigned(emu::lane()) % Size; }
    static unsigned meta_group_rank() { return emu::linear_thread() / Size; }
    static unsigned meta_group_size() { return (thread_block::num_threads() + Size - 1) / Size; }
};
template <unsigned Size, class Parent>
thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
    return {};
}
inline lanes_group tiled_partition(const thread_block&, unsigned size) {
    return lanes_group(detail::tile_mask(size));
}
using thread_group = lanes_group;

template <class Group>
void sync(const Group& group, emu::Here here = emu::Here()) {
    group.sync(here);
}

template <class T>
struct plus {
    T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {  // the smaller of two
    T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {  // the larger of two
    T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct bit_and {
    T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
    T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
    T operator()(T a, T b) const { return a ^ b; }
};

// Every member gets the result. A butterfly for whole powers of two, a walk through the ranks else.
template <class Group, class T, class Operation>
T reduce(const Group& group, T value, Operation operation, emu::Here here = emu::Here()) {
    const unsigned size = group.size();
    if ((size & (size - 1)) == 0) {
        for (unsigned lanes = size / 2; lanes; lanes /= 2)
            value = operation(value, group.shfl_xor(value, lanes, here));
        return value;
    }
    T result = group.shfl(value, 0, here);
    for (unsigned rank = 1; rank < size; ++rank) result = operation(result, group.shfl(value, int(rank), here));
    return result;
}
template <class Group, class T, class Operation>
T inclusive_scan(const Group& group, T value, Operation operation, emu::Here here = emu::Here()) {
    for (unsigned delta = 1; delta < group.size(); delta *= 2) {
        T other = group.shfl_up(value, delta, here);
        if (group.thread_rank() >= delta) value = operation(other, value);
    }
    return value;
}
template <class Group>
bool elect(const Group& group) {
    return group.thread_rank() == 0;
}

}  // namespace cooperative_groups
