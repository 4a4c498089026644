// What cuda_fp16.h and cuda_bf16.h compute with; included by each of them like narrow_types.h.
// Everything is computed in double, where the four operations are exact or round harmlessly, and
// rounded once. The name with a 2 does the same to both halves of a pair.

#define EMU_UNARY(name, name2, expression)                    \
    inline EMU_FLOAT name(EMU_FLOAT a) { return expression; } \
    inline EMU_FLOAT2 name2(EMU_FLOAT2 a) { return {name(a.x), name(a.y)}; }
#define EMU_BINARY(name, name2, expression)                                \
    inline EMU_FLOAT name(EMU_FLOAT a, EMU_FLOAT b) { return expression; } \
    inline EMU_FLOAT2 name2(EMU_FLOAT2 a, EMU_FLOAT2 b) { return {name(a.x, b.x), name(a.y, b.y)}; }
#define EMU_TERNARY(name, name2, expression)                                            \
    inline EMU_FLOAT name(EMU_FLOAT a, EMU_FLOAT b, EMU_FLOAT c) { return expression; } \
    inline EMU_FLOAT2 name2(EMU_FLOAT2 a, EMU_FLOAT2 b, EMU_FLOAT2 c) {                 \
        return {name(a.x, b.x, c.x), name(a.y, b.y, c.y)};                              \
    }

// Arithmetic; _rn is never joined to a fused multiply-add, and here nothing is.
EMU_BINARY(__hadd, __hadd2, double(a) + double(b))
EMU_BINARY(__hsub, __hsub2, double(a) - double(b))
EMU_BINARY(__hmul, __hmul2, double(a) * double(b))
EMU_BINARY(__hdiv, __h2div, double(a) / double(b))
EMU_BINARY(__hadd_rn, __hadd2_rn, double(a) + double(b))
EMU_BINARY(__hsub_rn, __hsub2_rn, double(a) - double(b))
EMU_BINARY(__hmul_rn, __hmul2_rn, double(a) * double(b))
EMU_TERNARY(__hfma, __hfma2, emu::fused(a, b, c))
EMU_UNARY(__hneg, __hneg2, (EMU_RAW{(unsigned short)(a.__x ^ 0x8000)}))
EMU_UNARY(__habs, __habs2, (EMU_RAW{(unsigned short)(a.__x & 0x7fff)}))
// _sat: brought into 0 to 1; NaN gives 0.
EMU_BINARY(__hadd_sat, __hadd2_sat, __saturatef(__hadd(a, b)))
EMU_BINARY(__hsub_sat, __hsub2_sat, __saturatef(__hsub(a, b)))
EMU_BINARY(__hmul_sat, __hmul2_sat, __saturatef(__hmul(a, b)))
EMU_TERNARY(__hfma_sat, __hfma2_sat, __saturatef(__hfma(a, b, c)))

// Comparisons: with a NaN the plain ones are false, those ending in u are true.
inline bool __hisnan(EMU_FLOAT a) { return float(a) != float(a); }
inline int __hisinf(EMU_FLOAT a) {
    return (a.__x & 0x7fff) == EMU_FORMAT::infinity ? (a.__x >> 15 ? -1 : 1) : 0;
}
inline EMU_FLOAT2 __hisnan2(EMU_FLOAT2 a) { return {__hisnan(a.x), __hisnan(a.y)}; }
#define EMU_COMPARISON(name, name_both, expression)                                                \
    inline bool name(EMU_FLOAT p, EMU_FLOAT q) {                                                   \
        const float a = p, b = q;                                                                  \
        return expression;                                                                         \
    }                                                                                              \
    inline EMU_FLOAT2 name##2(EMU_FLOAT2 a, EMU_FLOAT2 b) {                                        \
        return {name(a.x, b.x), name(a.y, b.y)};                                                   \
    }                                                                                              \
    inline bool name_both(EMU_FLOAT2 a, EMU_FLOAT2 b) { return name(a.x, b.x) && name(a.y, b.y); } \
    inline unsigned name##2_mask(EMU_FLOAT2 a, EMU_FLOAT2 b) {                                     \
        return (name(a.x, b.x) ? 0xffffu : 0u) | (name(a.y, b.y) ? 0xffff0000u : 0u);              \
    }
EMU_COMPARISON(__heq, __hbeq2, a == b)
EMU_COMPARISON(__hne, __hbne2, a<b || a> b)
EMU_COMPARISON(__hlt, __hblt2, a < b)
EMU_COMPARISON(__hle, __hble2, a <= b)
EMU_COMPARISON(__hgt, __hbgt2, a > b)
EMU_COMPARISON(__hge, __hbge2, a >= b)
EMU_COMPARISON(__hequ, __hbequ2, !(a < b || a > b))
EMU_COMPARISON(__hneu, __hbneu2, a != b)
EMU_COMPARISON(__hltu, __hbltu2, !(a >= b))
EMU_COMPARISON(__hleu, __hbleu2, !(a > b))
EMU_COMPARISON(__hgtu, __hbgtu2, !(a <= b))
EMU_COMPARISON(__hgeu, __hbgeu2, !(a < b))
#undef EMU_COMPARISON
// A NaN loses against a number, except in _nan; +0 is more than -0.
EMU_BINARY(__hmax, __hmax2, __hisnan(a) || __hlt(a, b) || (__heq(a, b) && a.__x >> 15) ? b : a)
EMU_BINARY(__hmin, __hmin2, __hisnan(a) || __hgt(a, b) || (__heq(a, b) && b.__x >> 15) ? b : a)
EMU_BINARY(__hmax_nan, __hmax2_nan, __hisnan(a) || __hisnan(b) ? EMU_FLOAT(NAN) : __hmax(a, b))
EMU_BINARY(__hmin_nan, __hmin2_nan, __hisnan(a) || __hisnan(b) ? EMU_FLOAT(NAN) : __hmin(a, b))
EMU_TERNARY(__hfma_relu, __hfma2_relu, __hmax_nan(__hfma(a, b, c), 0.0f))

#define EMU_OPERATOR(op, name, T)                         \
    inline T operator op(T a, T b) { return name(a, b); } \
    EMU_INLINE T& operator op## = (T & a, T b) { return a = name(a, b); }
#define EMU_OPERATORS(T, add, sub, mul, div, neg, one)  \
    EMU_OPERATOR(+, add, T)                             \
    EMU_OPERATOR(-, sub, T)                             \
    EMU_OPERATOR(*, mul, T)                             \
    EMU_OPERATOR(/, div, T)                             \
    inline T operator+(T a) { return a; }               \
    inline T operator-(T a) { return neg(a); }          \
    EMU_INLINE T& operator++(T& a) { return a += one; } \
    EMU_INLINE T& operator--(T& a) { return a -= one; } \
    EMU_INLINE T operator++(T& a, int) {                \
        T old = a;                                      \
        return ++a, old;                                \
    }                                                   \
    EMU_INLINE T operator--(T& a, int) {                \
        T old = a;                                      \
        return --a, old;                                \
    }
EMU_OPERATORS(EMU_FLOAT, __hadd, __hsub, __hmul, __hdiv, __hneg, EMU_FLOAT(1))
EMU_OPERATORS(EMU_FLOAT2, __hadd2, __hsub2, __hmul2, __h2div, __hneg2, EMU_FLOAT2(1, 1))
#undef EMU_OPERATORS
#undef EMU_OPERATOR
#define EMU_RELATION(op, name, name2)                                        \
    inline bool operator op(EMU_FLOAT a, EMU_FLOAT b) { return name(a, b); } \
    inline bool operator op(EMU_FLOAT2 a, EMU_FLOAT2 b) { return name2(a, b); }
EMU_RELATION(==, __heq, __hbeq2)
EMU_RELATION(!=, __hneu, __hbneu2)
EMU_RELATION(<, __hlt, __hblt2)
EMU_RELATION(<=, __hle, __hble2)
EMU_RELATION(>, __hgt, __hbgt2)
EMU_RELATION(>=, __hge, __hbge2)
#undef EMU_RELATION

EMU_UNARY(hceil, h2ceil, std::ceil(float(a)))
EMU_UNARY(hfloor, h2floor, std::floor(float(a)))
EMU_UNARY(htrunc, h2trunc, std::trunc(float(a)))
EMU_UNARY(hrint, h2rint, std::nearbyint(float(a)))
EMU_UNARY(hrcp, h2rcp, 1.0 / double(a))
EMU_UNARY(hsqrt, h2sqrt, std::sqrt(double(a)))
EMU_UNARY(hrsqrt, h2rsqrt, 1.0 / std::sqrt(double(a)))
EMU_UNARY(hexp, h2exp, std::exp(double(a)))
EMU_UNARY(hexp2, h2exp2, std::exp2(double(a)))
EMU_UNARY(hexp10, h2exp10, std::pow(10.0, double(a)))
EMU_UNARY(hlog, h2log, std::log(double(a)))
EMU_UNARY(hlog2, h2log2, std::log2(double(a)))
EMU_UNARY(hlog10, h2log10, std::log10(double(a)))
EMU_UNARY(hsin, h2sin, std::sin(double(a)))
EMU_UNARY(hcos, h2cos, std::cos(double(a)))
EMU_UNARY(htanh, h2tanh, std::tanh(double(a)))
EMU_UNARY(htanh_approx, h2tanh_approx, std::tanh(double(a)))
#undef EMU_UNARY
#undef EMU_BINARY
#undef EMU_TERNARY

EMU_INLINE EMU_FLOAT atomicAdd(EMU_FLOAT* address, EMU_FLOAT v) {
    return emu::atomic_update(address, [=](EMU_FLOAT old) { return old + v; });
}
EMU_INLINE EMU_FLOAT2 atomicAdd(EMU_FLOAT2* address, EMU_FLOAT2 v) {
    return emu::atomic_update(address, [=](EMU_FLOAT2 old) { return old + v; });
}
