// WMMA: tiles of matrices that a warp holds in its registers, multiplied by the functions of
// emulator/tensor_cores.h. CUDA leaves open which lane holds which element; here it is as for mma.
#pragma once

#include <type_traits>

#include "emulator/tensor_cores.h"

namespace nvcuda {
namespace wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}

}  // namespace wmma
}  // namespace nvcuda

namespace emu {

// Where an element of a lane is: in mma's tiles of 16 x 16 (a), 16 x 8 (b) and 16 x 8 (d); of
// floats 16 x 8, 8 x 8 and 16 x 8.
struct At {
    int row, col;
};
inline At in_a(int lane, int e) {
    return {lane / 4 + e / 2 % 2 * 8, lane % 4 * 2 + e % 2 + e / 4 * 8};
}
inline At in_b(int lane, int e) { return {lane % 4 * 2 + e % 2 + e / 2 * 8, lane / 4}; }
inline At in_d(int lane, int e) { return {lane / 4 + e / 2 * 8, lane % 4 * 2 + e % 2}; }
inline At in_a_tf32(int lane, int e) { return {lane / 4 + e % 2 * 8, lane % 4 + e / 2 * 4}; }
inline At in_b_tf32(int lane, int e) { return {lane % 4 + e * 4, lane / 4}; }

template <class T>
using WmmaStored =
    std::conditional_t<std::is_same<T, nvcuda::wmma::precision::tf32>::value, float, T>;

// Of a product of M x N x K: mma's are 16 x 8 x 16, of floats 16 x 8 x 8. With 8 rows the product
// is that of the matrices turned around.
template <int M, int N, int K>
struct WmmaShape {
    static constexpr bool kTf32 = K == 8;  // of floats
    static constexpr bool kTurned = M == 8;
    static constexpr int kRows = kTurned ? N : M, kCols = kTurned ? M : N;
    static constexpr int kTilesA = kRows / 16, kTilesB = kCols / 8;
    static constexpr int kInA = kTf32 ? 4 : 8, kInB = kTf32 ? 2 : 4,
                         kInD = 4;  // elements of a lane
    static_assert((K == 16 && M * N == 256 && M % 8 == 0 && N % 8 == 0) ||
                      (K == 8 && M == 16 && N == 16),
                  "the emulator has WMMA of 16 x 16 x 16, 32 x 8 x 16, 8 x 32 x 16, and of tf32 "
                  "16 x 16 x 8");
};

}  // namespace emu

namespace nvcuda {
namespace wmma {

template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
    using Shape = emu::WmmaShape<M, N, K>;
    static constexpr bool kIsA = std::is_same<Use, matrix_a>::value;
    static constexpr bool kIsB = std::is_same<Use, matrix_b>::value;
    static constexpr bool kFirst = Shape::kTurned ? kIsB : kIsA;  // of mma's factors
    static constexpr bool kSecond = Shape::kTurned ? kIsA : kIsB;
    static constexpr int kEach = kFirst ? Shape::kInA : kSecond ? Shape::kInB : Shape::kInD;
    static constexpr int num_elements = kEach * (kFirst    ? Shape::kTilesA
                                                 : kSecond ? Shape::kTilesB
                                                           : Shape::kTilesA * Shape::kTilesB);
    static constexpr int num_storage_elements = num_elements;
    emu::WmmaStored<T> x[num_elements];

    // Row and column of a lane's element in the matrix.
    static emu::At at(int lane, int e) {
        const int tile = e / kEach;
        emu::At in{};
        if (kFirst) {
            in = Shape::kTf32 ? emu::in_a_tf32(lane, e % kEach) : emu::in_a(lane, e % kEach);
            in.row += 16 * tile;
        } else if (kSecond) {
            in = Shape::kTf32 ? emu::in_b_tf32(lane, e % kEach) : emu::in_b(lane, e % kEach);
            in.col += 8 * tile;
        } else {
            in = emu::in_d(lane, e % kEach);
            in.row += 16 * (tile / Shape::kTilesB);
            in.col += 8 * (tile % Shape::kTilesB);
        }
        if (Shape::kTurned) return {in.col, in.row};
        return in;
    }
};

template <class Use, int M, int N, int K, class T, class Layout, class V>
EMU_INLINE void fill_fragment(fragment<Use, M, N, K, T, Layout>& f, const V& value) {
    for (auto& element : f.x)
        element = static_cast<std::remove_reference_t<decltype(element)>>(value);
}

}  // namespace wmma
}  // namespace nvcuda

namespace emu {

// Two neighbours in memory are one access, as far as their types have 16 bits.
template <class Fragment, class T>
EMU_INLINE void wmma_load(Fragment& f, const T* from, unsigned stride, bool by_rows) {
    for (int e = 0; e < Fragment::num_elements; ++e) {
        const At one = Fragment::at(lane(), e);
        const At next = Fragment::at(lane(), e + 1 < Fragment::num_elements ? e + 1 : e);
        const T* place = from + (by_rows ? one.row * stride + one.col : one.col * stride + one.row);
        const bool side = by_rows ? next.row == one.row && next.col == one.col + 1
                                  : next.col == one.col && next.row == one.row + 1;
        if (sizeof(T) == 2 && side) {
            const unsigned both = *reinterpret_cast<const unsigned*>(place);
            __builtin_memcpy(&f.x[e++], &both, 4);
        } else {
            f.x[e] = *place;
        }
    }
}
template <class Fragment, class T>
EMU_INLINE void wmma_store(T* to, const Fragment& f, unsigned stride, bool by_rows) {
    for (int e = 0; e < Fragment::num_elements; ++e) {
        const At at = Fragment::at(lane(), e);
        to[by_rows ? at.row * stride + at.col : at.col * stride + at.row] = f.x[e];
    }
}

// d += a * b of one tile. Whole numbers of 8 bits are halves, and their sums of 16 products exact.
EMU_INLINE void wmma_tile(float* d, const __half* a, const __half* b, Here here) {
    emu_mma(EMU_F16, d, a, b, here);
}
EMU_INLINE void wmma_tile(float* d, const __nv_bfloat16* a, const __nv_bfloat16* b, Here here) {
    emu_mma(EMU_BF16, d, a, b, here);
}
EMU_INLINE void wmma_tile(float* d, const float* a, const float* b, Here here) {
    emu_mma(EMU_TF32, d, a, b, here);
}
template <class T>
EMU_INLINE std::enable_if_t<std::is_integral<T>::value> wmma_tile(float* d, const T* a, const T* b,
                                                                  Here here) {
    __half of_a[8], of_b[4];
    for (int e = 0; e < 8; ++e) of_a[e] = __half(float(a[e]));
    for (int e = 0; e < 4; ++e) of_b[e] = __half(float(b[e]));
    emu_mma(EMU_F16, d, of_a, of_b, here);
}

}  // namespace emu

namespace nvcuda {
namespace wmma {

template <class Use, int M, int N, int K, class T, class Layout, class E>
EMU_INLINE void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& f, const E* from,
                                 unsigned stride) {
    emu::wmma_load(f, from, stride, std::is_same<Layout, row_major>::value);
}
template <int M, int N, int K, class T>
EMU_INLINE void load_matrix_sync(fragment<accumulator, M, N, K, T>& f, const T* from,
                                 unsigned stride, layout_t layout) {
    emu::wmma_load(f, from, stride, layout == mem_row_major);
}
template <int M, int N, int K, class T>
EMU_INLINE void store_matrix_sync(T* to, const fragment<accumulator, M, N, K, T>& f,
                                  unsigned stride, layout_t layout) {
    emu::wmma_store(to, f, stride, layout == mem_row_major);
}

// d = a * b + c.
template <int M, int N, int K, class T, class LayoutA, class LayoutB, class D, class C>
EMU_INLINE void mma_sync(fragment<accumulator, M, N, K, D>& d,
                         const fragment<matrix_a, M, N, K, T, LayoutA>& a,
                         const fragment<matrix_b, M, N, K, T, LayoutB>& b,
                         const fragment<accumulator, M, N, K, C>& c, bool = false, EMU_HERE) {
    using Shape = typename fragment<matrix_a, M, N, K, T, LayoutA>::Shape;
    constexpr bool whole = std::is_integral<D>::value;
    const auto* first = Shape::kTurned ? b.x : a.x;
    const auto* second = Shape::kTurned ? a.x : b.x;
    for (int i = 0; i < Shape::kTilesA; ++i)
        for (int j = 0; j < Shape::kTilesB; ++j) {
            const int at = (i * Shape::kTilesB + j) * Shape::kInD;
            float sums[Shape::kInD];
            for (int e = 0; e < Shape::kInD; ++e) sums[e] = whole ? 0.0f : float(c.x[at + e]);
            emu::wmma_tile(sums, first + i * Shape::kInA, second + j * Shape::kInB, here);
            for (int e = 0; e < Shape::kInD; ++e)
                d.x[at + e] = whole ? D(c.x[at + e] + D(sums[e])) : D(sums[e]);
        }
}

// To the nearest number of 10 bits of fraction, halves away from zero.
inline float __float_to_tf32(float value) {
    unsigned bits;
    __builtin_memcpy(&bits, &value, 4);
    if ((bits >> 23 & 255) != 255) bits = (bits + 0x1000) & ~0x1fffu;
    __builtin_memcpy(&value, &bits, 4);
    return value;
}

}  // namespace wmma
}  // namespace nvcuda
