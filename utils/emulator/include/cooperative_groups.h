// Cooperative groups: the grid, the thread block, tiles of a block or a warp, coalesced threads.
#pragma once

#include "cuda_runtime.h"

namespace cooperative_groups {

// Any group, as a function's parameter may be: the lanes of a warp that a mask names, or with mask
// 0 the whole block.
class thread_group {
   public:
    explicit thread_group(unsigned mask) : mask_(mask) {}
    unsigned size() const {
        return mask_ ? unsigned(__popc(mask_)) : blockDim.x * blockDim.y * blockDim.z;
    }
    unsigned num_threads() const { return size(); }
    unsigned thread_rank() const {
        return mask_ ? unsigned(__popc(mask_ & ((1u << emu::lane()) - 1))) : emu_thread();
    }
    void sync(emu::Here here = emu::Here()) const {
        if (mask_) emu_collective(EMU_SYNCWARP, mask_, 0, 0, here);
        else emu_barrier(EMU_BARRIER_PLAIN, 0, here);
    }

   protected:
    unsigned mask_;
};

class thread_block : public thread_group {
   public:
    thread_block() : thread_group(0) {}
    static void sync(emu::Here here = emu::Here()) { emu_barrier(EMU_BARRIER_PLAIN, 0, here); }
    static unsigned thread_rank() { return emu_thread(); }
    static dim3 group_index() { return blockIdx; }
    static dim3 thread_index() { return threadIdx; }
    static dim3 dim_threads() { return blockDim; }
    static dim3 group_dim() { return blockDim; }
    static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned size() { return num_threads(); }
};
inline thread_block this_thread_block() { return {}; }

// Scratch that tiles of more than a warp need on a GPU; here they have their own.
template <unsigned first = 1024, unsigned second = 0>
struct block_tile_memory {};
template <unsigned first, unsigned second>
thread_block this_thread_block(block_tile_memory<first, second>&) {
    return {};
}

class grid_group {
   public:
    static unsigned long long thread_rank() {
        return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
    }
    static unsigned long long block_rank() {
        return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * (unsigned long long)blockIdx.z);
    }
    static unsigned long long num_blocks() {
        return gridDim.x * (gridDim.y * (unsigned long long)gridDim.z);
    }
    static unsigned long long num_threads() { return num_blocks() * thread_block::num_threads(); }
    static unsigned long long size() { return num_threads(); }
    static dim3 dim_blocks() { return gridDim; }
    static dim3 group_dim() { return gridDim; }
    static dim3 block_index() { return blockIdx; }
    // In a launch by cudaLaunchCooperativeKernel: else the blocks run one after the other.
    static void sync(emu::Here here = emu::Here()) { emu_grid_barrier(here); }
    static bool is_valid() { return true; }
    static unsigned cluster_rank() { return unsigned(block_rank()); }
};
inline grid_group this_grid() { return {}; }

// Lanes of one warp, in ascending order.
class lanes_group : public thread_group {
   public:
    using thread_group::thread_group;

    template <class T>
    T shfl(T value, int rank, emu::Here here = emu::Here()) const {
        return exchange(value, lane_of(rank % int(size())), here);
    }
    template <class T>
    T shfl_down(T value, unsigned delta, emu::Here here = emu::Here()) const {
        int rank = int(thread_rank() + delta);
        return exchange(value, rank < int(size()) ? lane_of(rank) : -1, here);
    }
    template <class T>
    T shfl_up(T value, unsigned delta, emu::Here here = emu::Here()) const {
        int rank = int(thread_rank()) - int(delta);
        return exchange(value, rank >= 0 ? lane_of(rank) : -1, here);
    }
    template <class T>
    T shfl_xor(T value, unsigned lanes, emu::Here here = emu::Here()) const {
        int rank = int(thread_rank() ^ lanes);
        return exchange(value, rank < int(size()) ? lane_of(rank) : -1, here);
    }
    unsigned ballot(int predicate, emu::Here here = emu::Here()) const {
        return packed(__ballot_sync(mask_, predicate, here));
    }
    int any(int predicate, emu::Here here = emu::Here()) const {
        return __any_sync(mask_, predicate, here);
    }
    int all(int predicate, emu::Here here = emu::Here()) const {
        return __all_sync(mask_, predicate, here);
    }
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
    // Unlike __shfl_sync, a group passes structures of any size, in pieces.
    template <class T>
    T exchange(T value, int lane, emu::Here here) const {
        if constexpr (sizeof(T) <= 8) {
            return emu::shuffle(EMU_SHUFFLE, mask_, value, lane, here);
        } else {
            static_assert(std::is_trivially_copyable_v<T>, "a group exchanges plain values");
            uint64_t words[(sizeof(T) + 7) / 8] = {};
            std::memcpy(words, &value, sizeof(T));
            for (uint64_t& word : words) word = emu::shuffle(EMU_SHUFFLE, mask_, word, lane, here);
            std::memcpy(&value, words, sizeof(T));
            return value;
        }
    }
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
};

class coalesced_group : public lanes_group {
   public:
    explicit coalesced_group(unsigned mask, unsigned rank = 0, unsigned groups = 1)
        : lanes_group(mask), rank_(rank), groups_(groups) {}
    unsigned meta_group_rank() const { return rank_; }
    unsigned meta_group_size() const { return groups_; }

   private:
    unsigned rank_, groups_;
};
inline coalesced_group coalesced_threads(emu::Here here = emu::Here()) {
    return coalesced_group(emu_active_mask(here));
}
// The lanes of a group that bring the same label, or the same answer.
template <class Group, class T>
coalesced_group labeled_partition(const Group& group, T label, emu::Here here = emu::Here()) {
    return coalesced_group(__match_any_sync(group.emu_mask(), label, here));
}
template <class Group>
coalesced_group binary_partition(const Group& group, bool answer, emu::Here here = emu::Here()) {
    unsigned yes = __ballot_sync(group.emu_mask(), answer, here);
    return coalesced_group(answer ? yes : group.emu_mask() & ~yes, answer, 2);
}

namespace detail {
inline unsigned tile_mask(unsigned size) {
    unsigned lanes = size >= 32 ? 0xffffffffu : (1u << size) - 1;
    return lanes << (unsigned(emu::lane()) & ~(size - 1) & 31);
}
}  // namespace detail

template <unsigned Size, class Parent = void, class = void>
class thread_block_tile : public lanes_group {
    static_assert(Size && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, … 512 threads");

   public:
    explicit thread_block_tile(unsigned rank, unsigned tiles)
        : lanes_group(detail::tile_mask(Size)), rank_(rank), tiles_(tiles) {}
    template <class Other>
    thread_block_tile(const thread_block_tile<Size, Other>& tile)
        : thread_block_tile(tile.meta_group_rank(), tile.meta_group_size()) {}
    static constexpr unsigned size() { return Size; }
    static constexpr unsigned num_threads() { return Size; }
    static unsigned thread_rank() { return unsigned(emu::lane()) % Size; }
    // Which of its parent's tiles this one is.
    unsigned meta_group_rank() const { return rank_; }
    unsigned meta_group_size() const { return tiles_; }

   private:
    unsigned rank_, tiles_;
};

// A tile of several warps, which pass values through memory.
template <unsigned Size, class Parent>
class thread_block_tile<Size, Parent, std::enable_if_t<(Size > 32)>> {
    static_assert((Size & (Size - 1)) == 0 && Size <= 1024, "a tile has 1, 2, 4, … 512 threads");

   public:
    explicit thread_block_tile(unsigned rank, unsigned tiles) : rank_(rank), tiles_(tiles) {}
    static constexpr unsigned size() { return Size; }
    static constexpr unsigned num_threads() { return Size; }
    static unsigned thread_rank() { return emu_thread() % Size; }
    unsigned meta_group_rank() const { return rank_; }
    unsigned meta_group_size() const { return tiles_; }
    void sync(emu::Here here = emu::Here()) const { emu_team_barrier(first(), count(), here); }

    template <class T>
    T shfl(T value, int rank, emu::Here here = emu::Here()) const {
        return gather(value, here, [rank](const T* all, unsigned) { return all[rank % Size]; });
    }
    int any(int predicate, emu::Here here = emu::Here()) const {
        return emu_fold(predicate != 0, [](int a, int b) { return a | b; }, here);
    }
    int all(int predicate, emu::Here here = emu::Here()) const {
        return emu_fold(predicate != 0, [](int a, int b) { return a & b; }, here);
    }
    // In the order of the ranks.
    template <class T, class Operation>
    T emu_fold(T value, Operation operation, emu::Here here) const {
        return gather(value, here, [&](const T* all, unsigned count) {
            T result = all[0];
            for (unsigned i = 1; i < count; ++i) result = operation(result, all[i]);
            return result;
        });
    }

   private:
    static unsigned first() { return emu_thread() / Size * Size; }
    static unsigned count() {  // of the last tile there may be less
        const unsigned rest = thread_block::num_threads() - first();
        return rest < Size ? rest : Size;
    }
    template <class T, class Use>
    __attribute__((no_sanitize_thread)) static T gather(T value, emu::Here here, Use use) {
        T* all = static_cast<T*>(emu_team_memory(first(), count(), Size * sizeof(T)));
        __builtin_memcpy(static_cast<void*>(all + thread_rank()), &value, sizeof(T));
        emu_team_barrier(first(), count(), here);
        T result = use(all, count());
        emu_team_barrier(first(), count(), here);  // before the memory is used again
        return result;
    }
    unsigned rank_, tiles_;
};

template <unsigned Size, class Parent>
thread_block_tile<Size, Parent> tiled_partition(const Parent& parent) {
    return thread_block_tile<Size, Parent>(parent.thread_rank() / Size,
                                           (parent.size() + Size - 1) / Size);
}
inline thread_group tiled_partition(const thread_group&, unsigned size) {
    return thread_group(detail::tile_mask(size));
}

template <class Group>
void sync(const Group& group, emu::Here here = emu::Here()) {
    group.sync(here);
}
template <class Group>
void synchronize(const Group& group, emu::Here here = emu::Here()) {
    group.sync(here);
}
template <class Group, class Function, class... Arguments>
void invoke_one(const Group& group, Function&& function, Arguments&&... arguments) {
    if (group.thread_rank() == 0) function(std::forward<Arguments>(arguments)...);
}

namespace experimental {
using cooperative_groups::block_tile_memory;
using cooperative_groups::this_thread_block;
using cooperative_groups::tiled_partition;
}  // namespace experimental

}  // namespace cooperative_groups
