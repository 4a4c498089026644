// Arithmetic and conversions with a rounding of their own: _rn to nearest, _rz towards zero, _ru
// up, _rd down. Never contracted.
#pragma once

#include <cfenv>
#include <climits>
#include <cmath>

#include "emulator/warp.h"

namespace emu {

// To the compiler the value may have changed here; so it cannot move arithmetic past this place.
template <class T>
void unknown(T& value) {
    asm volatile("" : "+m"(value));
}
// The processor rounds as it is told.
template <class R, class F, class... A>
R rounded(int mode, F f, A... arguments) {
    std::fesetround(mode);
    (unknown(arguments), ...);
    R result = f(arguments...);
    unknown(result);
    std::fesetround(FE_TONEAREST);
    return result;
}

// A whole number as an integer: out of range saturates, as on the GPU. NaN gives the top bit alone
// from double or to 64 bits, else 0.
template <class I, class F>
I to_integer(F x) {
    constexpr bool wide = sizeof(I) == 8, sign = std::is_signed_v<I>;
    constexpr I top = I(1ull << (8 * sizeof(I) - 1));
    if (x != x) return wide || sizeof(F) == 8 ? top : I(0);
    constexpr double limit = (sign ? 1.0 : 2.0) * double(1ull << (8 * sizeof(I) - 1));
    if (double(x) >= limit) return I(sign ? top - 1 : ~I(0));
    if (double(x) <= (sign ? -limit : 0.0)) return sign ? top : I(0);
    return I(x);
}

}  // namespace emu

#define EMU_ROUNDED(T, name, mode, parameters, expression, ...)                          \
    inline T name parameters {                                                           \
        return emu::rounded<T>(mode, [] parameters { return expression; }, __VA_ARGS__); \
    }
#define EMU_FOUR(T, name, parameters, expression, ...)                            \
    inline T name##_rn parameters { return expression; }                          \
    EMU_ROUNDED(T, name##_rz, FE_TOWARDZERO, parameters, expression, __VA_ARGS__) \
    EMU_ROUNDED(T, name##_ru, FE_UPWARD, parameters, expression, __VA_ARGS__)     \
    EMU_ROUNDED(T, name##_rd, FE_DOWNWARD, parameters, expression, __VA_ARGS__)
#define EMU_ARITHMETIC(T, prefix, fma)                       \
    EMU_FOUR(T, __##prefix##add, (T a, T b), T(a + b), a, b) \
    EMU_FOUR(T, __##prefix##sub, (T a, T b), T(a - b), a, b) \
    EMU_FOUR(T, __##prefix##mul, (T a, T b), T(a* b), a, b)  \
    EMU_FOUR(T, __##prefix##div, (T a, T b), T(a / b), a, b) \
    EMU_FOUR(T, __##prefix##rcp, (T a), T(T(1) / a), a)      \
    EMU_FOUR(T, __##prefix##sqrt, (T a), T(std::sqrt(a)), a) \
    EMU_FOUR(T, __##fma, (T a, T b, T c), T(std::fma(a, b, c)), a, b, c)
EMU_ARITHMETIC(float, f, fmaf)
EMU_ARITHMETIC(double, d, fma)
#undef EMU_ARITHMETIC
inline float __frsqrt_rn(float x) { return float(1.0 / std::sqrt(double(x))); }

EMU_FOUR(float, __int2float, (int x), float(x), x)
EMU_FOUR(float, __uint2float, (unsigned x), float(x), x)
EMU_FOUR(float, __ll2float, (long long x), float(x), x)
EMU_FOUR(float, __ull2float, (unsigned long long x), float(x), x)
EMU_FOUR(double, __ll2double, (long long x), double(x), x)
EMU_FOUR(double, __ull2double, (unsigned long long x), double(x), x)
EMU_FOUR(float, __double2float, (double x), float(x), x)
#undef EMU_FOUR
#undef EMU_ROUNDED
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }

#define EMU_TO_INTEGER(from, F, to, I)                                                   \
    inline I __##from##2##to##_rn(F x) { return emu::to_integer<I>(std::nearbyint(x)); } \
    inline I __##from##2##to##_rz(F x) { return emu::to_integer<I>(std::trunc(x)); }     \
    inline I __##from##2##to##_ru(F x) { return emu::to_integer<I>(std::ceil(x)); }      \
    inline I __##from##2##to##_rd(F x) { return emu::to_integer<I>(std::floor(x)); }
#define EMU_FROM(from, F)                   \
    EMU_TO_INTEGER(from, F, int, int)       \
    EMU_TO_INTEGER(from, F, uint, unsigned) \
    EMU_TO_INTEGER(from, F, ll, long long) EMU_TO_INTEGER(from, F, ull, unsigned long long)
EMU_FROM(float, float)
EMU_FROM(double, double)
#undef EMU_FROM
#undef EMU_TO_INTEGER

inline int __float_as_int(float x) { return emu::value<int>(emu::bits(x)); }
inline unsigned __float_as_uint(float x) { return emu::value<unsigned>(emu::bits(x)); }
inline float __int_as_float(int x) { return emu::value<float>(emu::bits(x)); }
inline float __uint_as_float(unsigned x) { return emu::value<float>(emu::bits(x)); }
inline long long __double_as_longlong(double x) { return emu::value<long long>(emu::bits(x)); }
inline double __longlong_as_double(long long x) { return emu::value<double>(emu::bits(x)); }
inline int __double2hiint(double x) { return int(emu::bits(x) >> 32); }
inline int __double2loint(double x) { return int(emu::bits(x)); }
inline double __hiloint2double(int hi, int lo) {
    return emu::value<double>(uint64_t(unsigned(hi)) << 32 | unsigned(lo));
}
