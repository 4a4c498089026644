// Rounding to the 16-bit floating-point formats and back, by their bits: any host compiler will do.
#pragma once

#include <cstdint>

#include "emulator/rounding.h"

namespace emu {

struct Half {
    static constexpr int fraction = 10, least = -14;  // bits of it; the least normal exponent
    static constexpr uint16_t infinity = 0x7c00;
};
struct Bfloat16 {
    static constexpr int fraction = 7, least = -126;
    static constexpr uint16_t infinity = 0x7f80;
};

enum Rounding { NEAREST, TOWARDS_ZERO, UP, DOWN };

// significand * 2^scale, rounded once; ties go to the even neighbour.
template <class Format>
uint16_t narrow(bool negative, uint64_t significand, int scale, Rounding mode) {
    const uint16_t sign = uint16_t(negative << 15);
    if (!significand) return sign;
    const int exponent = 63 - __builtin_clzll(significand) + scale;
    const int binade = exponent > Format::least ? exponent : Format::least;  // subnormals share one
    const int shift = binade - Format::fraction - scale;
    uint64_t whole = shift < 0 ? significand << -shift : 0, rest = 0, half = 1;
    if (shift >= 0) {
        const int bits = shift < 63 ? shift : 63;
        whole = significand >> bits;
        rest = significand & ((1ull << bits) - 1);
        half = bits ? 1ull << (bits - 1) : 1;
    }
    const bool outwards = mode == (negative ? DOWN : UP);
    if (mode == NEAREST ? rest > half || (rest == half && whole % 2) : rest && outwards) ++whole;
    // A carry out of the fraction goes into the exponent, as it should.
    const uint64_t result = (uint64_t(binade - Format::least) << Format::fraction) + whole;
    const uint16_t most = Format::infinity - !(mode == NEAREST || outwards);
    return sign | (result < Format::infinity ? uint16_t(result) : most);
}
template <class Format>
uint16_t narrow(double x, Rounding mode = NEAREST) {
    constexpr int cut = 52 - Format::fraction, least = 1023 + Format::least;
    constexpr unsigned normal = (Format::infinity >> Format::fraction) - 1u;  // exponents
    const uint64_t word = bits(x), fraction = word & ((1ull << 52) - 1);
    const int exponent = int(word >> 52 & 0x7ff);
    if (mode == NEAREST && unsigned(exponent - least) < normal) {  // mostly
        const uint64_t magnitude = (word & ~(1ull << 63)) - (uint64_t(least - 1) << 52);
        // Half of the last bit, or just less where that bit is 0. It may carry into the exponent.
        const uint64_t up = (1ull << (cut - 1)) - 1 + (magnitude >> cut & 1);
        return uint16_t(word >> 63 << 15 | (magnitude + up) >> cut);
    }
    if (x != x) return 0x7fff;
    if (exponent == 0x7ff) return uint16_t(word >> 63 << 15) | Format::infinity;
    return narrow<Format>(word >> 63, exponent ? fraction | 1ull << 52 : fraction,
                          (exponent ? exponent : 1) - 1075, mode);
}
template <class Format, class I>
uint16_t narrow_integer(I i, Rounding mode = NEAREST) {
    return narrow<Format>(i < 0, i < 0 ? 0 - uint64_t(i) : uint64_t(i), 0, mode);
}

inline float widen(Bfloat16, uint16_t word) { return value<float>(uint64_t(word) << 16); }
inline float widen(Half, uint16_t word) {
    const uint32_t sign = uint32_t(word & 0x8000) << 16, rest = word & 0x7fff;
    if (rest < 0x0400) {  // zero and the subnormals
        const float magnitude = float(rest) * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    const uint32_t bias = rest < 0x7c00 ? 127 - 15 : 255 - 31;
    return value<float>(uint64_t(sign | (rest << 13) + (bias << 23)));
}

// a * b + c for values of a 16-bit format, to be rounded to one: the product is exact, and a sum
// that is not becomes odd in its last bit, so that it can be no tie.
inline double fused(double a, double b, double c) {
    const double product = a * b, sum = product + c, part = sum - product;
    const double error = (product - (sum - part)) + (c - part);
    if (!(error > 0 || error < 0) || bits(sum) % 2) return sum;
    return value<double>(bits(sum) + ((error > 0) == (sum > 0) ? 1 : -1));
}

}  // namespace emu
