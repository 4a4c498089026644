// cub::BlockScan: running folds over the threads of a block.
#pragma once

#include "../emulated.h"

namespace cub {

enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

template <class T, int X, BlockScanAlgorithm HOW = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1>
class BlockScan : public detail::Scans<BlockScan<T, X, HOW, Y, Z>, T> {
    static constexpr int kThreads = X * Y * Z;
    using Scans = detail::Scans<BlockScan, T>;
    friend Scans;

   public:
    struct TempStorage {
        detail::Raw<T, kThreads + 1> values;  // and the fold of all
    };
    explicit BlockScan(TempStorage& storage) : storage_(storage) {}
    using Scans::ExclusiveSum;
    using Scans::InclusiveSum;

    // What comes before the block, the first warp asks `prefix`, given the block's own sum; what
    // the first thread gets counts.
    template <class Prefix, class = std::enable_if_t<std::is_class_v<Prefix>>>
    void InclusiveSum(T in, T& out, Prefix& prefix, emu::Here here = emu::Here()) {
        T all;
        InclusiveSum(in, out, all, here);
        out = before_block(all, prefix, here) + out;
    }
    template <class Prefix, class = std::enable_if_t<std::is_class_v<Prefix>>>
    void ExclusiveSum(T in, T& out, Prefix& prefix, emu::Here here = emu::Here()) {
        T all;
        ExclusiveSum(in, out, all, here);
        out = before_block(all, prefix, here) + out;
    }
    // Of several values a thread.
    template <int ITEMS>
    void InclusiveSum(T (&in)[ITEMS], T (&out)[ITEMS], emu::Here here = emu::Here()) {
        T all;
        InclusiveSum(in, out, all, here);
    }
    template <int ITEMS>
    void InclusiveSum(T (&in)[ITEMS], T (&out)[ITEMS], T& all, emu::Here here = emu::Here()) {
        T sum = before_items(in, all, here);
        for (int i = 0; i < ITEMS; ++i) out[i] = sum = sum + in[i];
    }
    template <int ITEMS>
    void ExclusiveSum(T (&in)[ITEMS], T (&out)[ITEMS], emu::Here here = emu::Here()) {
        T all;
        ExclusiveSum(in, out, all, here);
    }
    template <int ITEMS>
    void ExclusiveSum(T (&in)[ITEMS], T (&out)[ITEMS], T& all, emu::Here here = emu::Here()) {
        T sum = before_items(in, all, here);
        for (int i = 0; i < ITEMS; ++i) {
            const T value = in[i];  // out may be in
            out[i] = sum;
            sum = sum + value;
        }
    }

   private:
    static int thread() { return detail::thread_of_block(); }
    static bool is_first() { return thread() == 0; }

    template <class Op>
    T fold_before(T value, Op& op, T& all, emu::Here here) {
        auto& values = storage_.values;
        values[thread()] = value;
        __syncthreads(here);  // all values are there before the first thread folds them
        if (thread() == 0) values[kThreads] = detail::scan_in_place(&values[0], kThreads, op);
        __syncthreads(here);  // the folds are there before anyone reads them
        all = values[kThreads];
        return values[thread()];
    }
    template <int ITEMS>
    T before_items(T (&in)[ITEMS], T& all, emu::Here here) {
        Sum op;
        T before;
        ExclusiveSum(detail::fold(in, op), before, all, here);
        return before;
    }
    template <class Prefix>
    T before_block(T all, Prefix& prefix, emu::Here here) {
        __syncthreads(here);  // the block's sum has been read before its place is taken
        if (thread() < 32) {
            const T before = prefix(all);
            if (thread() == 0) storage_.values[kThreads] = before;
        }
        __syncthreads(here);  // what comes before the block is there
        return storage_.values[kThreads];
    }

    TempStorage& storage_;
};

}  // namespace cub
