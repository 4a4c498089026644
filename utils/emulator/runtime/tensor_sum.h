// How a tensor core rounds: a few products and what they are added to, summed at once.
//
// On an H200, by mma and wgmma alike: the products are exact. All of them and what they are added
// to are aligned to the largest exponent among them, cut 25 bits below it, and summed exactly; the
// sum is cut to a float. Fitted to the bits that benchmarks/probe_tensor_cores.py brought from the
// card, and held to some of them by tests/test_tensor_sum.py.
#pragma once

#include <cstdint>
#include <cstring>

namespace emu {

// A number that a tensor core multiplies: significand * 2^exponent. The exponent is that of the
// leading bit of a normal number, so that a significand is in [1, 2) times 2^fraction bits.
struct Factor {
    int16_t significand;
    int16_t exponent;  // kInfinite and above: no number
};
constexpr int16_t kInfinite = 16000, kNaN = 16001;

enum TensorType : int { kF16, kBf16, kTf32 };  // as EmuTensorType

template <int FRACTION, int EXPONENT>  // bits of each
inline Factor factor_of(uint32_t magnitude, bool negative) {
    constexpr int bias = (1 << (EXPONENT - 1)) - 1;
    int exponent = int(magnitude >> FRACTION), significand = int(magnitude & ((1 << FRACTION) - 1));
    if (exponent == (1 << EXPONENT) - 1)
        return {int16_t(negative ? -1 : 1), significand ? kNaN : kInfinite};
    if (exponent) significand |= 1 << FRACTION;
    else exponent = 1;
    return {int16_t(negative ? -significand : significand), int16_t(exponent - bias)};
}
inline Factor factor(int type, uint32_t bits) {
    if (type == kF16) return factor_of<10, 5>(bits & 0x7fff, bits >> 15 & 1);
    if (type == kBf16) return factor_of<7, 8>(bits & 0x7fff, bits >> 15 & 1);
    return factor_of<10, 8>(bits >> 13 & 0x3ffff, bits >> 31);  // the rest of a float is not seen
}

// Products in a sum.
constexpr int depth(int type) { return type == kTf32 ? 8 : 16; }

// What is true of all factors of a sum.
struct Factors {
    bool zeros = true, finite = true;
    void add(Factor f) { zeros &= !f.significand, finite &= f.exponent < kInfinite; }
};
inline bool no_product(Factors a, Factors b) {  // but zeros
    return (a.zeros && b.finite) || (b.zeros && a.finite);
}
// tensor_sum() where there is no product: beyond the edge of a matrix, mostly.
inline float sum_without_products(float c) { return c == 0 ? 0 : c; }  // never -0

// a[0] * b[0] + ... + c, of `k` products: depth(type).
float tensor_sum(int type, const Factor* a, const Factor* b, int k, float c);

}  // namespace emu
