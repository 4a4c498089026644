// The types of cuda_fp16.h and cuda_bf16.h, and their conversions. Included by each of them, which
// says what they are called: EMU_FLOAT is __half, EMU_FLOAT2 __half2, EMU_NAMED(a, b) a##half##b.

struct EMU_RAW {
    unsigned short x;
};

struct EMU_FLOAT {
    unsigned short __x;

    EMU_FLOAT() = default;
    EMU_FLOAT(EMU_RAW raw) : __x(raw.x) {}
    EMU_FLOAT(float x) : __x(emu::narrow<EMU_FORMAT>(x)) {}
    EMU_FLOAT(double x) : __x(emu::narrow<EMU_FORMAT>(x)) {}
    template <class I, std::enable_if_t<std::is_integral_v<I>>* = nullptr>
    EMU_FLOAT(I i) : __x(emu::narrow_integer<EMU_FORMAT>(i)) {}

    operator EMU_RAW() const { return EMU_RAW{__x}; }
    operator float() const { return emu::widen(EMU_FORMAT(), __x); }
    operator bool() const { return __x & 0x7fff; }
    template <class I, std::enable_if_t<std::is_integral_v<I>>* = nullptr>
    operator I() const {
        return emu::to_integer<I>(std::trunc(float(*this)));
    }
};

struct __attribute__((aligned(4))) EMU_FLOAT2 {
    EMU_FLOAT x, y;
    EMU_WHOLE
    EMU_FLOAT2() = default;
    EMU_FLOAT2(EMU_FLOAT x, EMU_FLOAT y) : x(x), y(y) {}
};

template <>
inline constexpr bool emu::is_number<EMU_FLOAT> = true;
template <>
inline constexpr bool emu::is_number<EMU_FLOAT2> = true;

// The bits.
inline EMU_FLOAT EMU_NAMED(__ushort_as_, )(unsigned short word) { return EMU_RAW{word}; }
inline EMU_FLOAT EMU_NAMED(__short_as_, )(short word) { return EMU_RAW{(unsigned short)word}; }
inline unsigned short EMU_NAMED(__, _as_ushort)(EMU_FLOAT a) { return a.__x; }
inline short EMU_NAMED(__, _as_short)(EMU_FLOAT a) { return short(a.__x); }

// From and to float.
#define EMU_ROUNDED(suffix, mode)                                      \
    inline EMU_FLOAT EMU_NAMED(__float2, suffix)(float a) {            \
        return EMU_RAW{emu::narrow<EMU_FORMAT>(double(a), emu::mode)}; \
    }
EMU_ROUNDED(, NEAREST)
EMU_ROUNDED(_rn, NEAREST)
EMU_ROUNDED(_rz, TOWARDS_ZERO)
EMU_ROUNDED(_ru, UP)
EMU_ROUNDED(_rd, DOWN)
#undef EMU_ROUNDED
inline EMU_FLOAT EMU_NAMED(__double2, )(double a) { return a; }
inline float EMU_NAMED(__, 2float)(EMU_FLOAT a) { return a; }
inline EMU_FLOAT2 EMU_NAMED(__floats2, 2_rn)(float a, float b) { return {a, b}; }
inline EMU_FLOAT2 EMU_NAMED(__float2, 2_rn)(float a) { return {a, a}; }
inline EMU_FLOAT2 EMU_NAMED(__float22, 2_rn)(float2 a) { return {a.x, a.y}; }
inline float2 EMU_NAMED(__, 22float2)(EMU_FLOAT2 a) { return make_float2(a.x, a.y); }
inline float __low2float(EMU_FLOAT2 a) { return a.x; }
inline float __high2float(EMU_FLOAT2 a) { return a.y; }

// From and to integers.
#define EMU_FROM_INTEGER(name, I, suffix, mode)                        \
    inline EMU_FLOAT EMU_NAMED(__##name##2, suffix)(I i) {             \
        return EMU_RAW{emu::narrow_integer<EMU_FORMAT>(i, emu::mode)}; \
    }
#define EMU_TO_INTEGER(name, I, suffix, whole)             \
    inline I EMU_NAMED(__, 2##name##suffix)(EMU_FLOAT a) { \
        return emu::to_integer<I>(std::whole(float(a)));   \
    }
#define EMU_INTEGER(name, I)                     \
    EMU_FROM_INTEGER(name, I, _rn, NEAREST)      \
    EMU_FROM_INTEGER(name, I, _rz, TOWARDS_ZERO) \
    EMU_FROM_INTEGER(name, I, _ru, UP)           \
    EMU_FROM_INTEGER(name, I, _rd, DOWN)         \
    EMU_TO_INTEGER(name, I, _rn, nearbyint)      \
    EMU_TO_INTEGER(name, I, _rz, trunc)          \
    EMU_TO_INTEGER(name, I, _ru, ceil)           \
    EMU_TO_INTEGER(name, I, _rd, floor)
EMU_INTEGER(short, short)
EMU_INTEGER(ushort, unsigned short)
EMU_INTEGER(int, int)
EMU_INTEGER(uint, unsigned)
EMU_INTEGER(ll, long long)
EMU_INTEGER(ull, unsigned long long)
EMU_TO_INTEGER(char, signed char, _rz, trunc)
EMU_TO_INTEGER(uchar, unsigned char, _rz, trunc)
#undef EMU_INTEGER
#undef EMU_TO_INTEGER
#undef EMU_FROM_INTEGER

// Pairs: x is the low half, y the high one.
inline EMU_FLOAT2 EMU_NAMED(make_, 2)(EMU_FLOAT a, EMU_FLOAT b) { return {a, b}; }
inline EMU_FLOAT2 EMU_NAMED(__halves2, 2)(EMU_FLOAT a, EMU_FLOAT b) { return {a, b}; }
inline EMU_FLOAT2 EMU_BROADCAST(EMU_FLOAT a) { return {a, a}; }
inline EMU_FLOAT EMU_NAMED(__low2, )(EMU_FLOAT2 a) { return a.x; }
inline EMU_FLOAT EMU_NAMED(__high2, )(EMU_FLOAT2 a) { return a.y; }
inline EMU_FLOAT2 EMU_NAMED(__low2, 2)(EMU_FLOAT2 a) { return {a.x, a.x}; }
inline EMU_FLOAT2 EMU_NAMED(__high2, 2)(EMU_FLOAT2 a) { return {a.y, a.y}; }
inline EMU_FLOAT2 EMU_NAMED(__lows2, 2)(EMU_FLOAT2 a, EMU_FLOAT2 b) { return {a.x, b.x}; }
inline EMU_FLOAT2 EMU_NAMED(__highs2, 2)(EMU_FLOAT2 a, EMU_FLOAT2 b) { return {a.y, b.y}; }
inline EMU_FLOAT2 __lowhigh2highlow(EMU_FLOAT2 a) { return {a.y, a.x}; }
