// Device functions that CUDA adds to the C++ mathematics.
// They compute with the CPU's rounding, which for the fast forms is better than the GPU's.
#pragma once

#include <cmath>
#include <cstdlib>

#include <math.h>  // isnan and friends, abs: also without std::

#define EMU_MINMAX(R, A, B)                                         \
    constexpr R min(A a, B b) { return (R)a < (R)b ? (R)a : (R)b; } \
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
constexpr unsigned umin(unsigned a, unsigned b) { return min(a, b); }
constexpr unsigned umax(unsigned a, unsigned b) { return max(a, b); }
constexpr long long llmin(long long a, long long b) { return min(a, b); }
constexpr long long llmax(long long a, long long b) { return max(a, b); }
constexpr unsigned long long ullmin(unsigned long long a, unsigned long long b) {
    return min(a, b);
}
constexpr unsigned long long ullmax(unsigned long long a, unsigned long long b) {
    return max(a, b);
}
// As on the GPU, a NaN loses against a number.
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(float a, double b) { return fmin(a, b); }
inline double max(float a, double b) { return fmax(a, b); }
inline double min(double a, float b) { return fmin(a, b); }
inline double max(double a, float b) { return fmax(a, b); }

// Where a program defines one of them itself (translate/built_ins.py), the calls of the others.
#define EMU_OWN(name)                    \
    template <class... T>                \
    inline auto emu_own_##name(T... a) { \
        return name(a...);               \
    }
EMU_OWN(min)
EMU_OWN(max)
EMU_OWN(abs)
#undef EMU_OWN

// noexcept: newer C libraries declare some of these themselves, and so.
inline double rsqrt(double x) noexcept { return 1.0 / sqrt(x); }
inline float rsqrtf(float x) noexcept { return float(1.0 / sqrt(double(x))); }
inline float rsqrt(float x) noexcept { return rsqrtf(x); }
inline double rcbrt(double x) noexcept { return 1.0 / cbrt(x); }
inline float rcbrtf(float x) noexcept { return 1.0f / cbrtf(x); }
inline float fdividef(float a, float b) noexcept { return a / b; }
inline double rhypot(double a, double b) noexcept { return 1.0 / hypot(a, b); }
inline float rhypotf(float a, float b) noexcept { return 1.0f / hypotf(a, b); }
inline double norm3d(double a, double b, double c) noexcept { return hypot(hypot(a, b), c); }
inline float norm3df(float a, float b, float c) noexcept { return hypotf(hypotf(a, b), c); }
inline double rnorm3d(double a, double b, double c) noexcept { return 1.0 / norm3d(a, b, c); }
inline float rnorm3df(float a, float b, float c) noexcept { return 1.0f / norm3df(a, b, c); }
inline double norm4d(double a, double b, double c, double d) noexcept {
    return hypot(norm3d(a, b, c), d);
}
inline float norm4df(float a, float b, float c, float d) noexcept {
    return hypotf(norm3df(a, b, c), d);
}

// sin(pi x) and cos(pi x), exact where the answer is 0, 1 or -1.
inline double sinpi(double x) noexcept {
    double r = remainder(x, 2.0);  // -1 to 1
    if (r == 0.0 || fabs(r) == 1.0) return copysign(0.0, x);
    return fabs(r) == 0.5 ? copysign(1.0, r) : sin(M_PI * r);
}
inline double cospi(double x) noexcept {
    double r = fabs(remainder(x, 2.0));
    return r == 0.5 ? 0.0 : cos(M_PI * r);
}
inline float sinpif(float x) noexcept { return float(sinpi(double(x))); }
inline float cospif(float x) noexcept { return float(cospi(double(x))); }
inline void sincospi(double x, double* s, double* c) noexcept { *s = sinpi(x), *c = cospi(x); }
inline void sincospif(float x, float* s, float* c) noexcept { *s = sinpif(x), *c = cospif(x); }

// The inverses of erf, erfc and the normal distribution: a guess, improved by Halley's rule.
inline double erfcinv(double y) noexcept {
    if (!(y > 0.0 && y < 2.0)) return y == 0.0 ? HUGE_VAL : y == 2.0 ? -HUGE_VAL : double(NAN);
    if (y > 1.0) return -erfcinv(2.0 - y);
    const double t = sqrt(-2.0 * log(0.5 * y));  // Abramowitz and Stegun 26.2.22
    double x = M_SQRT1_2 * (t - (2.30753 + t * 0.27061) / (1.0 + t * (0.99229 + t * 0.04481)));
    for (int i = 0; i < 3; ++i) {
        const double error = erfc(x) - y;
        x += error / (M_2_SQRTPI * exp(-x * x) - x * error);
    }
    return x;
}
inline double erfinv(double y) noexcept {
    if (fabs(y) > 0.5) return y < 0.0 ? -erfcinv(1.0 + y) : erfcinv(1.0 - y);
    double x = y / M_2_SQRTPI;
    for (int i = 0; i < 4; ++i) x -= (erf(x) - y) / (M_2_SQRTPI * exp(-x * x));
    return x;
}
inline double normcdf(double x) noexcept { return 0.5 * erfc(-x * M_SQRT1_2); }
inline double normcdfinv(double p) noexcept { return -M_SQRT2 * erfcinv(2.0 * p); }
inline float erfcinvf(float y) noexcept { return float(erfcinv(y)); }
inline float erfinvf(float y) noexcept { return float(erfinv(y)); }
inline float normcdff(float x) noexcept { return float(normcdf(x)); }
inline float normcdfinvf(float p) noexcept { return float(normcdfinv(p)); }

// Fast forms: a multiplication, rounded to a float, before or after what the hardware has: powers
// and logarithms of base 2, sine and cosine of turns, reciprocals. So they lose what that rounding
// loses, and no more: __expf of large arguments, __sinf of many turns, __logf near 1.
inline float __log2f(float x) {
    const double y = log2(double(x));
    return float(fabs(y) < 1.0 ? rint(y * 0x1p23) * 0x1p-23 : y);  // an absolute error there
}
inline float __logf(float x) { return __log2f(x) * 0.693147182f; }
inline float __log10f(float x) { return __log2f(x) * 0.301029995f; }
inline float __expf(float x) { return float(exp2(double(x * 1.44269502f))); }
inline float __exp10f(float x) { return float(exp2(double(x * 3.32192802f))); }
inline float __powf(float x, float y) { return float(exp2(double(y * __log2f(x)))); }
inline double emu_turns(float x) noexcept {  // toward zero
    const double exact = double(x) * 0.15915493667125702;
    const float near = float(exact);
    const bool beyond = fabs(double(near)) > fabs(exact);
    return beyond ? double(nextafterf(near, 0.0f)) : double(near);
}
inline float __sinf(float x) { return float(sinpi(2.0 * emu_turns(x))); }
inline float __cosf(float x) { return float(cospi(2.0 * emu_turns(x))); }
inline void __sincosf(float x, float* s, float* c) { *s = __sinf(x), *c = __cosf(x); }
// A call, so that estimates find it: the compiler would make of it what it makes of a / b.
extern "C" float emu_quick_quotient(float a, float b) noexcept;
inline float __fdividef(float a, float b) { return emu_quick_quotient(a, b); }
inline float __tanf(float x) { return __fdividef(__sinf(x), __cosf(x)); }
inline float __tanhf(float x) { return tanhf(x); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
