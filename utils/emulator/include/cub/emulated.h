// What CUB's primitives share here: operations, storage, and who a thread is. Results, barriers and
// what may be used again when are CUB's; the ways are plain ones, for the eyes of the emulator.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

namespace cub {

struct Sum {
    template <class T>
    T operator()(const T& a, const T& b) const {
        return a + b;
    }
};
struct Max {
    template <class T>
    T operator()(const T& a, const T& b) const {
        return a < b ? b : a;
    }
};
struct Min {
    template <class T>
    T operator()(const T& a, const T& b) const {
        return b < a ? b : a;
    }
};

namespace detail {

// Values in shared memory, where nothing is constructed.
template <class T, int N>
struct Raw {
    static_assert(std::is_trivially_copyable_v<T>, "CUB moves values byte by byte");
    alignas(T) unsigned char bytes[N * sizeof(T)];
    T& operator[](int i) { return reinterpret_cast<T*>(bytes)[i]; }
};

inline int thread_of_block() {
    return int(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}

// By one thread: each of n values becomes the fold of those before it, the first one stays.
// Returns the fold of all.
template <class T, class Op>
T scan_in_place(T* values, int n, Op& op) {
    T sum = values[0];
    for (int i = 1; i < n; ++i) {
        const T value = values[i];
        values[i] = sum;
        sum = op(sum, value);
    }
    return sum;
}

// The fold of a thread's own values.
template <class T, int ITEMS, class Op>
T fold(const T (&values)[ITEMS], Op& op) {
    T sum = values[0];
    for (int i = 1; i < ITEMS; ++i) sum = op(sum, values[i]);
    return sum;
}

// What scans of a block and of a warp share. A Scan knows who is_first(), and the fold_before() a
// thread or lane, of all those before it; for the first one that means nothing.
template <class Scan, class T>
class Scans {
   public:
    template <class Op>
    void InclusiveScan(T in, T& out, Op op, T& all, emu::Here here = emu::Here()) {
        const T before = self().fold_before(in, op, all, here);
        out = Scan::is_first() ? in : op(before, in);
    }
    template <class Op>
    void InclusiveScan(T in, T& out, Op op, emu::Here here = emu::Here()) {
        T all;
        InclusiveScan(in, out, op, all, here);
    }
    // `all` is without the initial value, as CUB's.
    template <class Op>
    void ExclusiveScan(T in, T& out, T initial, Op op, T& all, emu::Here here = emu::Here()) {
        const T before = self().fold_before(in, op, all, here);
        out = Scan::is_first() ? initial : op(initial, before);
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
    Scan& self() { return static_cast<Scan&>(*this); }
};

}  // namespace detail
}  // namespace cub
