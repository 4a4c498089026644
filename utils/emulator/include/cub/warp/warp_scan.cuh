// cub::WarpScan: running folds over the lanes of a warp, or of each part of one.
#pragma once

#include "warp_reduce.cuh"

namespace cub {

template <class T, int LANES = 32>
class WarpScan : public detail::Scans<WarpScan<T, LANES>, T> {
    friend detail::Scans<WarpScan, T>;

   public:
    struct TempStorage {
        detail::Raw<T, LANES + 1> values;  // and the fold of all
    };
    explicit WarpScan(TempStorage& storage) : storage_(storage) {}

   private:
    static bool is_first() { return detail::Part<LANES>().lane == 0; }
    template <class Op>
    T fold_before(T value, Op& op, T& all, emu::Here here) {
        const detail::Part<LANES> part;
        auto& values = storage_.values;
        __syncwarp(part.mask, here);  // CUB shuffles: it may be called again at once
        values[part.lane] = value;
        __syncwarp(part.mask, here);  // all values are there before the first lane folds them
        if (part.lane == 0) values[LANES] = detail::scan_in_place(&values[0], LANES, op);
        __syncwarp(part.mask, here);  // the folds are there before anyone reads them
        all = values[LANES];
        return values[part.lane];
    }

    TempStorage& storage_;
};

}  // namespace cub
