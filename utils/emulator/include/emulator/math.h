// Device functions that CUDA adds to the C++ mathematics: fast-math, integer and cast intrinsics.
// They compute with the CPU's rounding, which for the fast forms is better than the GPU's.
#pragma once

#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "emulator/warp.h"

#include <math.h>  // isnan and friends, abs: also without std::

#define EMU_MINMAX(R, A, B)                                            \
    constexpr R min(A a, B b) { return (R)a < (R)b ? (R)a : (R)b; }    \
    constexpr R max(A a, B b) { return (R)a > (R)b ? (R)a : (R)b; }
#define EMU_MINMAX_SIGNED(S, U) \
    EMU_MINMAX(S, S, S) EMU_MINMAX(U, U, U) EMU_MINMAX(U, S, U) EMU_MINMAX(U, U, S)
EMU_MINMAX_SIGNED(int, unsigned)
EMU_MINMAX_SIGNED(long, unsigned long)
EMU_MINMAX_SIGNED(long long, unsigned long long)
EMU_MINMAX(long, int, long)
EMU_MINMAX(long, long, int)
EMU_MINMAX(long long, int, long long)
EMU_MINMAX(long long, long long, int)
EMU_MINMAX(unsigned long, int, unsigned long)
EMU_MINMAX(unsigned long, unsigned long, int)
EMU_MINMAX(unsigned long, unsigned, unsigned long)
EMU_MINMAX(unsigned long, unsigned long, unsigned)
#undef EMU_MINMAX_SIGNED
#undef EMU_MINMAX
// As on the GPU, a NaN loses against a number.
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(float a, double b) { return fmin(a, b); }
inline double max(float a, double b) { return fmax(a, b); }
inline double min(double a, float b) { return fmin(a, b); }
inline double max(double a, float b) { return fmax(a, b); }

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
inline float fdividef(float a, float b) { return a / b; }
inline float sinpif(float x) { return float(sin(M_PI * x)); }
inline float cospif(float x) { return float(cos(M_PI * x)); }
inline float normcdff(float x) { return 0.5f * erfcf(-x * float(M_SQRT1_2)); }
inline float rhypotf(float a, float b) { return 1.0f / hypotf(a, b); }
inline float norm3df(float a, float b, float c) { return sqrtf(a * a + b * b + c * c); }

// Fast forms.
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return exp10f(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __tanhf(float x) { return tanhf(x); }
inline void __sincosf(float x, float* s, float* c) { sincosf(x, s, c); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

// Rounded to nearest, never contracted.
#define EMU_ARITHMETIC(T, prefix)                                        \
    inline T __##prefix##add_rn(T a, T b) { return a + b; }              \
    inline T __##prefix##sub_rn(T a, T b) { return a - b; }              \
    inline T __##prefix##mul_rn(T a, T b) { return a * b; }              \
    inline T __##prefix##div_rn(T a, T b) { return a / b; }              \
    inline T __##prefix##rcp_rn(T a) { return T(1) / a; }                \
    inline T __##prefix##sqrt_rn(T a) { return std::sqrt(a); }
EMU_ARITHMETIC(float, f)
EMU_ARITHMETIC(double, d)
#undef EMU_ARITHMETIC
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }

// Conversions: out of range saturates and NaN gives 0, as on the GPU.
namespace emu {
template <class I, class F>
I to_integer(F x) {
    if (!(x == x)) return I(0);
    if (x <= F(std::is_signed_v<I> ? (sizeof(I) == 8 ? double(LLONG_MIN) : double(INT_MIN)) : 0.0))
        return std::is_signed_v<I> ? (sizeof(I) == 8 ? I(LLONG_MIN) : I(INT_MIN)) : I(0);
    const double top = sizeof(I) == 8 ? (std::is_signed_v<I> ? 0x1p63 : 0x1p64)
                                      : (std::is_signed_v<I> ? 0x1p31 : 0x1p32);
    if (double(x) >= top)
        return std::is_signed_v<I> ? (sizeof(I) == 8 ? I(LLONG_MAX) : I(INT_MAX)) : I(~I(0));
    return I(x);
}
}  // namespace emu
#define EMU_CONVERT(from, F, to, I)                                                        \
    inline I __##from##2##to##_rn(F x) { return emu::to_integer<I>(std::nearbyint(x)); }   \
    inline I __##from##2##to##_rz(F x) { return emu::to_integer<I>(std::trunc(x)); }       \
    inline I __##from##2##to##_ru(F x) { return emu::to_integer<I>(std::ceil(x)); }        \
    inline I __##from##2##to##_rd(F x) { return emu::to_integer<I>(std::floor(x)); }
EMU_CONVERT(float, float, int, int)
EMU_CONVERT(float, float, uint, unsigned)
EMU_CONVERT(float, float, ll, long long)
EMU_CONVERT(float, float, ull, unsigned long long)
EMU_CONVERT(double, double, int, int)
EMU_CONVERT(double, double, uint, unsigned)
EMU_CONVERT(double, double, ll, long long)
EMU_CONVERT(double, double, ull, unsigned long long)
#undef EMU_CONVERT
inline float __int2float_rn(int x) { return float(x); }
inline float __uint2float_rn(unsigned x) { return float(x); }
inline float __ll2float_rn(long long x) { return float(x); }
inline float __ull2float_rn(unsigned long long x) { return float(x); }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }
inline double __ll2double_rn(long long x) { return double(x); }
inline float __double2float_rn(double x) { return float(x); }

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

// Integers.
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned long long __brevll(unsigned long long x) {
    unsigned long long result = 0;
    for (int i = 0; i < 64; ++i) result |= (x >> i & 1) << (63 - i);
    return result;
}
inline unsigned __brev(unsigned x) { return unsigned(__brevll(x) >> 32); }
inline int __mul24(int a, int b) { return int(int64_t(a << 8 >> 8) * (b << 8 >> 8)); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
inline int __mulhi(int a, int b) { return int(int64_t(a) * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned(uint64_t(a) * b >> 32); }
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline unsigned __sad(int a, int b, unsigned c) {
    return unsigned(std::llabs((long long)a - b)) + c;
}
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a > b ? a - b : b - a) + c; }
inline int __hadd(int a, int b) { return int((int64_t(a) + b) >> 1); }
inline int __rhadd(int a, int b) { return int((int64_t(a) + b + 1) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) { return unsigned((uint64_t(a) + b) >> 1); }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
    uint64_t bytes = uint64_t(b) << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; ++i) {
        unsigned selector = s >> 4 * i & 15;
        unsigned byte = unsigned(bytes >> 8 * (selector & 7)) & 255;
        if (selector & 8) byte = byte & 128 ? 255 : 0;
        result |= byte << 8 * i;
    }
    return result;
}
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned shift) {
    return unsigned((uint64_t(hi) << 32 | lo) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned shift) {
    return unsigned((uint64_t(hi) << 32 | lo) >> (shift & 31));
}
inline int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 4; ++i) c += int(int8_t(a >> 8 * i)) * int8_t(b >> 8 * i);
    return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 4; ++i) c += (a >> 8 * i & 255) * (b >> 8 * i & 255);
    return c;
}

// Loads and stores with a cache hint.
#define EMU_LOAD(name) \
    template <class T> \
    EMU_INLINE T name(const T* address) { return *address; }
EMU_LOAD(__ldg)
EMU_LOAD(__ldcg)
EMU_LOAD(__ldca)
EMU_LOAD(__ldcs)
EMU_LOAD(__ldlu)
EMU_LOAD(__ldcv)
#undef EMU_LOAD
#define EMU_STORE(name) \
    template <class T>  \
    EMU_INLINE void name(T* address, T value) { *address = value; }
EMU_STORE(__stwb)
EMU_STORE(__stcg)
EMU_STORE(__stcs)
EMU_STORE(__stwt)
#undef EMU_STORE

// One tick a nanosecond: differences are CPU time, no GPU's.
inline long long clock64() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}
inline unsigned long long __globaltimer() { return (unsigned long long)clock64(); }
inline void __trap(emu::Here here = emu::Here()) { emu_trap(here); }
inline void __builtin_cuda_assume(bool) {}
#define __builtin_assume(condition) ((void)0)
inline unsigned __isGlobal(const void*) { return 1; }
