// cub::BlockReduce: one value of many, for the first thread of a block.
#pragma once

#include "../emulated.h"

namespace cub {

enum BlockReduceAlgorithm {
    BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
    BLOCK_REDUCE_RAKING,
    BLOCK_REDUCE_WARP_REDUCTIONS
};

template <class T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1>
class BlockReduce {
    static constexpr int kThreads = X * Y * Z;

   public:
    struct TempStorage {
        detail::Raw<T, kThreads> values;
    };
    explicit BlockReduce(TempStorage& storage) : storage_(storage) {}

    // Of the first `valid` threads. What other threads than the first get has no meaning.
    template <class Op>
    T Reduce(T value, Op op, int valid = kThreads, emu::Here here = emu::Here()) {
        const int thread = detail::thread_of_block();
        storage_.values[thread] = value;
        __syncthreads(here);  // all values are there before the first thread folds them
        if (thread == 0)
            for (int i = 1; i < valid; ++i) value = op(value, storage_.values[i]);
        return value;
    }
    template <int ITEMS, class Op>
    T Reduce(T (&values)[ITEMS], Op op, emu::Here here = emu::Here()) {
        return Reduce(detail::fold(values, op), op, kThreads, here);
    }
    T Sum(T value, int valid = kThreads, emu::Here here = emu::Here()) {
        return Reduce(value, cub::Sum(), valid, here);
    }
    template <int ITEMS>
    T Sum(T (&values)[ITEMS], emu::Here here = emu::Here()) {
        return Reduce(values, cub::Sum(), here);
    }

   private:
    TempStorage& storage_;
};

}  // namespace cub
