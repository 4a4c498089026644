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

// Of a word of operands: whether all are zeros, also of several that were joined by `|`; and other
// than 0 where one is no number.
inline bool are_zeros(int type, uint32_t words) {
    return !(words & (type == kTf32 ? 0x7fffe000 : 0x7fff7fff));
}
template <class Word>  // or several words, in a vector
inline Word specials(int type, Word word) {
    // The exponent's bits and one of its lowest carry beyond them where all are ones.
    if (type == kTf32) return ((word & 0x7f800000) + 0x00800000) & 0x80000000;
    const uint32_t exponent = type == kF16 ? 0x7c007c00 : 0x7f807f80;
    const uint32_t lowest = type == kF16 ? 0x04000400 : 0x00800080;
    return ((word & exponent) + lowest) & 0x80008000;
}
// The sum where there is no product but zeros: never -0.
constexpr uint32_t kNoNumber = 0x7fffffff;  // the only NaN that comes out
inline float sum_without_products(float c) {
    if (c == c) return c + 0.0f;
    memcpy(&c, &kNoNumber, sizeof c);
    return c;
}

// a[0] * b[0] + ... + c, of `k` products: depth(type).
float tensor_sum(int type, const Factor* a, const Factor* b, int k, float c);

// The same for eight columns of b at once. `bits` are given, in the low ones of each word;
// make_ready() finds the rest.
constexpr int kDeepest = 16, kAtOnce = 8;
constexpr int32_t kNothing = -1000;  // the exponent of a zero
struct RowOfA {
    uint32_t bits[kDeepest];  // by k
    float values[kDeepest];
    int32_t exponents[kDeepest];
    int32_t most;  // of the exponents: kNothing where all are zeros
};
struct ColumnsOfB {
    uint32_t bits[kDeepest][kAtOnce];  // by k, then by column
    float values[kDeepest][kAtOnce];
    int32_t exponents[kDeepest][kAtOnce];
    int32_t most;
};
void make_ready(int type, RowOfA& a);
void make_ready(int type, ColumnsOfB& b);
void read_row(int type, const uint32_t (&words)[8], RowOfA& a);  // 32 bytes along k
void add_products(int type, const RowOfA& a, const ColumnsOfB& b, float* sums);
void add_zeros(float* sums, int count);  // the same of products that are all zeros: a multiple of 8

// The operands in 32 bytes along k, of 8 words, `step` apart: to[i][0] is operand i.
template <int STRIDE>
void spread(int type, const uint32_t* words, int step, uint32_t* to) {
    for (int w = 0; w < 8; ++w) {
        const uint32_t word = words[w * step];
        if (type == kTf32) {
            to[w * STRIDE] = word;
        } else {
            to[2 * w * STRIDE] = word & 0xffff;
            to[(2 * w + 1) * STRIDE] = word >> 16;
        }
    }
}

}  // namespace emu
