// cub::WarpScan: running folds over the lanes of a warp, or of each part of one.
#pragma once

#include "warp_reduce.cuh"

namespace cub {

template <class T, int LANES = 32>
class WarpScan {
   public:
    struct TempStorage {
        detail::Raw<T, LANES + 1> values;  // and the fold of all
    };
    explicit WarpScan(TempStorage& storage) : storage_(storage) {}

    template <class Op>
    void InclusiveScan(T in, T& out, Op op, T& all, emu::Here here = emu::Here()) {
        const T before = fold_before(in, op, all, here);
        out = detail::Part<LANES>().lane == 0 ? in : op(before, in);
    }
    template <class Op>
    void InclusiveScan(T in, T& out, Op op, emu::Here here = emu::Here()) {
        T all;
        InclusiveScan(in, out, op, all, here);
    }
    template <class Op>
    void ExclusiveScan(T in, T& out, T initial, Op op, T& all, emu::Here here = emu::Here()) {
        const T before = fold_before(in, op, all, here);
        out = detail::Part<LANES>().lane == 0 ? initial : op(initial, before);
    }
    template <class Op>
    void ExclusiveScan(T in, T& out, T initial, Op op, emu::Here here = emu::Here()) {
        T all;
        ExclusiveScan(in, out, initial, op, all, here);
    }
    void InclusiveSum(T in, T& out, T& all, emu::Here here = emu::Here()) {
        InclusiveScan(in, out, Sum(), all, here);
    }
    void InclusiveSum(T in, T& out, emu::Here here = emu::Here()) {
        InclusiveScan(in, out, Sum(), here);
    }
    void ExclusiveSum(T in, T& out, T& all, emu::Here here = emu::Here()) {
        ExclusiveScan(in, out, T(), Sum(), all, here);
    }
    void ExclusiveSum(T in, T& out, emu::Here here = emu::Here()) {
        ExclusiveScan(in, out, T(), Sum(), here);
    }

   private:
    // The fold of all lanes before this one; for the first its own value, which means nothing.
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
