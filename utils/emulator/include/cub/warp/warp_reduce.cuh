// cub::WarpReduce: one value of many, for the first lane of a warp, or of each part of one.
#pragma once

#include "../emulated.h"

namespace cub {

namespace detail {
// Lanes of a warp that belong together, LANES neighbours.
template <int LANES>
struct Part {
    int lane = thread_of_block() % 32 % LANES;
    unsigned mask = (LANES == 32 ? ~0u : (1u << LANES % 32) - 1)
                    << thread_of_block() % 32 / LANES * LANES;
};
}  // namespace detail

template <class T, int LANES = 32>
class WarpReduce {
   public:
    struct TempStorage {
        detail::Raw<T, LANES> values;
    };
    explicit WarpReduce(TempStorage& storage) : storage_(storage) {}

    // Of the first `valid` lanes. What other lanes than the first get has no meaning.
    template <class Op>
    T Reduce(T value, Op op, int valid = LANES, emu::Here here = emu::Here()) {
        const detail::Part<LANES> part;
        __syncwarp(part.mask, here);  // CUB shuffles: it may be called again at once
        storage_.values[part.lane] = value;
        __syncwarp(part.mask, here);  // all values are there before the first lane folds them
        if (part.lane == 0)
            for (int i = 1; i < valid; ++i) value = op(value, storage_.values[i]);
        return value;
    }
    T Sum(T value, int valid = LANES, emu::Here here = emu::Here()) {
        return Reduce(value, cub::Sum(), valid, here);
    }

   private:
    TempStorage& storage_;
};

}  // namespace cub
