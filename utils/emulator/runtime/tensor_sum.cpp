// The one sum that a tensor core makes.
#include "tensor_sum.h"

#include <algorithm>

namespace emu {
namespace {

constexpr int kBelow = 25;   // bits that are kept below the largest term's exponent
constexpr int kZero = -133;  // the exponent of a zero: none counts as less

float from_bits(uint32_t bits) {
    float result;
    memcpy(&result, &bits, sizeof result);
    return result;
}

// sum * 2^scale, cut.
float cut(int64_t sum, int scale) {
    if (!sum) return 0;
    const uint32_t sign = sum < 0 ? 0x80000000u : 0;
    uint64_t magnitude = sum < 0 ? uint64_t(-sum) : uint64_t(sum);
    const int top = 63 - __builtin_clzll(magnitude), exponent = std::max(top + scale, -126);
    const int shift = exponent - 23 - scale;
    if (exponent > 127) return from_bits(sign | 0x7f800000u);
    magnitude = shift > 63 ? 0 : shift >= 0 ? magnitude >> shift : magnitude << -shift;
    if (!magnitude) return 0;  // never -0
    return from_bits(sign | uint32_t((uint64_t(exponent + 126) << 23) + magnitude));
}

float sum_of_specials(const Factor* a, const Factor* b, int k, float c) {
    bool nan = c != c, infinite[2] = {};
    if (c - c != 0 && !nan) infinite[c < 0] = true;
    for (int i = 0; i < k; ++i) {
        const bool no_number = a[i].exponent >= kInfinite || b[i].exponent >= kInfinite;
        if (!no_number) continue;
        nan |= a[i].exponent == kNaN || b[i].exponent == kNaN || !a[i].significand ||
               !b[i].significand;
        infinite[(a[i].significand < 0) != (b[i].significand < 0)] = true;
    }
    if (nan || (infinite[0] && infinite[1])) return from_bits(0x7fffffff);
    return from_bits(infinite[1] ? 0xff800000u : 0x7f800000u);
}

// Eight integers at once, in one register where the processor has one that is so wide: a product of
// four warps makes sixteen thousand sums.
typedef int32_t Eight __attribute__((vector_size(32)));
#if defined(__x86_64__) && defined(__gnu_linux__)
#    define EMU_WIDE __attribute__((target_clones("avx2", "default")))
#else
#    define EMU_WIDE
#endif
#define EMU_EACH(half) for (int half = 0; half < halves; ++half)

// The sum where no factor is special, which it says: `fine`. `halves`: of 8 products each, 1 or 2.
// Terms are brought to multiples of 2^(most - kBelow), toward zero; each is below 2^27, so that
// sixteen of them fit. Choices are made by masks, all ones or none, which vectors have.
EMU_WIDE float plain_sum(int more, const Factor* a, const Factor* b, int halves, uint32_t word,
                         bool& fine) {
    static_assert(sizeof(Factor) ==
                  4);  // the significand in the low half, the exponent in the high
    Eight product[2], exponent[2], special[2];
    EMU_EACH(h) {
        Eight left, right;
        memcpy(&left, a + 8 * h, sizeof left), memcpy(&right, b + 8 * h, sizeof right);
        product[h] = (left << 16 >> 16) * (right << 16 >> 16);
        const Eight up = left >> 16, down = right >> 16, zero = product[h] == 0;
        special[h] = (up >= kInfinite) | (down >= kInfinite);
        exponent[h] = ((up + down) & ~zero) | (kZero & zero);
    }
    if (halves == 1) product[1] = special[1] = Eight{}, exponent[1] = Eight{} + kZero;
    const Eight later = exponent[1] > exponent[0], any = special[0] | special[1];
    const Eight largest = (exponent[1] & later) | (exponent[0] & ~later);

    const int field = int(word >> 23 & 0xff), own_exponent = std::max(field, 1) - 127;
    const int64_t own = int64_t(word & 0x7fffff) | (field ? 0x800000 : 0);
    int most = own ? own_exponent : kZero, odd = 0;
    for (int i = 0; i < 8; ++i) most = std::max(most, largest[i]), odd |= any[i];
    fine = !odd;

    Eight sum = {};
    EMU_EACH(h) {
        const Eight sign = product[h] >> 31, far = most - exponent[h], end = far > 31;
        const Eight shift = (31 & end) | (far & ~end);
        const Eight kept = ((((product[h] ^ sign) - sign) << more) & ~end) >> shift;
        sum += (kept ^ sign) - sign;
    }
    int64_t total = 0;
    for (int i = 0; i < 8; ++i) total += sum[i];
    const int64_t cut_own = own << (kBelow - 23) >> std::min(own ? most - own_exponent : 0, 62);
    return cut(total + (word >> 31 ? -cut_own : cut_own), most - kBelow);
}

typedef int32_t Four __attribute__((vector_size(16)));
typedef int64_t FourLong __attribute__((vector_size(32)));
typedef float EightFloats __attribute__((vector_size(32)));
typedef float FourFloats __attribute__((vector_size(16)));
typedef double FourDoubles __attribute__((vector_size(32)));

inline Eight chosen(Eight mask, Eight one, Eight other) { return (one & mask) | (other & ~mask); }
inline Eight larger(Eight a, Eight b) { return chosen(a > b, a, b); }

// Values and exponents of operands, `count` of them, a multiple of eight: the largest exponent.
EMU_WIDE int32_t read_operands(int type, const uint32_t* bits, int count, float* values,
                               int32_t* exponents) {
    Eight most = Eight{} + kNothing;
    for (int i = 0; i < count; i += 8) {
        Eight word, magnitude, field, value, special;
        memcpy(&word, bits + i, sizeof word);
        if (type == kF16) {
            magnitude = word & 0x7fff, field = magnitude >> 10;
            special = field == 31;
            const Eight normal = (magnitude << 13) + (112 << 23);
            const EightFloats small = __builtin_convertvector(magnitude, EightFloats) * 0x1p-24f;
            value = chosen(field == 0, (Eight)small, normal) | (word & 0x8000) << 16;
        } else {
            value = type == kBf16 ? word << 16 : word & ~0x1fff;
            magnitude = value & 0x7fffffff, field = magnitude >> 23;
            special = field == 255;
        }
        Eight exponent = larger(field, Eight{} + 1) - (type == kF16 ? 15 : 127);
        exponent = chosen(magnitude == 0, Eight{} + kNothing, exponent);
        exponent = chosen(special, Eight{} + kInfinite, exponent);
        memcpy(values + i, &value, sizeof value);
        memcpy(exponents + i, &exponent, sizeof exponent);
        most = larger(most, exponent);
    }
    int32_t all = kNothing;
    for (int i = 0; i < 8; ++i) all = std::max(all, most[i]);
    return all;
}

// The sums as plain_sum() makes them, where `undone` does not become all ones: where nothing is
// special, and no power of 2 on the way beyond what a float holds. Products and what they are added
// to are scaled so that the last bit that is kept is a 1, and become integers, which cuts them
// toward zero. In a double, which holds a sum of these, all but 24 bits are cut.
EMU_WIDE void eight_sums(const RowOfA& a, const ColumnsOfB& b, int k, float* sums, Eight* undone) {
    Eight most = Eight{} + 2 * kNothing;
    for (int i = 0; i < k; ++i) {
        Eight exponent;
        memcpy(&exponent, b.exponents[i], sizeof exponent);
        most = larger(most, exponent + a.exponents[i]);
    }
    Eight word;
    memcpy(&word, sums, sizeof word);
    const Eight own = larger(word >> 23 & 0xff, Eight{} + 1) - 127;
    most = larger(most, chosen((word & 0x7fffffff) == 0, Eight{} + kNothing, own));
    most &= most > kNothing / 2;  // zeros alone: their sum is 0, however they are scaled
    *undone = (most < -100) | (most > 120);

    const EightFloats up = (EightFloats)((kBelow + 127 - most) << 23);
    union {
        Eight all;
        Four half[2];
    } total, kept;
    total.all = Eight{};
    for (int i = 0; i < k; ++i) {
        EightFloats value;
        memcpy(&value, b.values[i], sizeof value);
        total.all += __builtin_convertvector(value * a.values[i] * up, Eight);
    }
    kept.all = __builtin_convertvector((EightFloats)word * up, Eight);
    union {
        EightFloats all;
        FourFloats half[2];
    } result;
    for (int h = 0; h < 2; ++h) {
        const FourDoubles sum = __builtin_convertvector(total.half[h], FourDoubles) +
                                __builtin_convertvector(kept.half[h], FourDoubles);
        const FourLong cut = (FourLong)sum & ~((int64_t(1) << 29) - 1);
        result.half[h] = __builtin_convertvector((FourDoubles)cut, FourFloats);
    }
    result.all *= (EightFloats)((most - kBelow + 127) << 23);
    memcpy(sums, &result.all, sizeof result.all);
}

float one_sum(int type, const RowOfA& a, const ColumnsOfB& b, int column, int k, float c) {
    if (c != c) return from_bits(0x7fffffff);
    if (c - c != 0 && a.most < kInfinite && b.most < kInfinite) return c;
    Factor left[kDeepest], right[kDeepest];
    for (int i = 0; i < k; ++i) {
        left[i] = factor(type, a.bits[i]);
        right[i] = factor(type, b.bits[i][column]);
    }
    return tensor_sum(type, left, right, k, c);
}

}  // namespace

void make_ready(int type, RowOfA& a) {
    a.most = read_operands(type, a.bits, depth(type), a.values, a.exponents);
}
void read_row(int type, const uint32_t (&words)[8], RowOfA& a) {
    uint32_t any = 0;
    for (uint32_t word : words) any |= word;
    if (are_zeros(type, any)) {
        a = RowOfA{};
        std::fill(a.exponents, a.exponents + kDeepest, kNothing);
        a.most = kNothing;
        return;
    }
    spread<1>(type, words, 1, a.bits);
    make_ready(type, a);
}
void make_ready(int type, ColumnsOfB& b) {
    b.most = read_operands(type, b.bits[0], depth(type) * kAtOnce, b.values[0], b.exponents[0]);
}

EMU_WIDE void add_zeros(float* sums, int count) {
    for (int i = 0; i < count; i += kAtOnce) {
        EightFloats sum;
        memcpy(&sum, sums + i, sizeof sum);
        sum += EightFloats{};  // never -0
        const Eight number = sum == sum;
        const Eight result = chosen(number, (Eight)sum, Eight{} + int32_t(kNoNumber));
        memcpy(sums + i, &result, sizeof result);
    }
}

void add_products(int type, const RowOfA& a, const ColumnsOfB& b, float* sums) {
    // Beyond the edge of a matrix there are zeros, mostly.
    if ((a.most == kNothing && b.most < kInfinite) || (b.most == kNothing && a.most < kInfinite))
        return add_zeros(sums, kAtOnce);
    float before[kAtOnce];
    memcpy(before, sums, sizeof before);
    const int k = depth(type);
    Eight undone;
    eight_sums(a, b, k, sums, &undone);
    FourLong any;
    memcpy(&any, &undone, sizeof any);
    if (!(any[0] | any[1] | any[2] | any[3])) return;
    for (int i = 0; i < kAtOnce; ++i)
        if (undone[i]) sums[i] = one_sum(type, a, b, i, k, before[i]);
}

float tensor_sum(int type, const Factor* a, const Factor* b, int k, float c) {
    const int fraction = type == kBf16 ? 14 : 20;  // bits of a product's
    uint32_t word;
    memcpy(&word, &c, sizeof word);
    bool fine;
    const float sum = plain_sum(kBelow - fraction, a, b, k / 8, word, fine);
    return fine && (word >> 23 & 0xff) != 0xff ? sum : sum_of_specials(a, b, k, c);
}

}  // namespace emu

// For the tests that hold it to the card, bits for bits: of `count` sums, `k` operands each of a
// and b, and one of c. And the same of eight columns of b at once: `count` rows of a.
extern "C" void emu_tensor_sums(int type, int k, int count, const uint32_t* a, const uint32_t* b,
                                const uint32_t* c, uint32_t* result) {
    emu::Factor left[16], right[16];
    for (int n = 0; n < count; ++n, a += k, b += k) {
        for (int i = 0; i < k; ++i)
            left[i] = emu::factor(type, a[i]), right[i] = emu::factor(type, b[i]);
        const float sum = emu::tensor_sum(type, left, right, k, emu::from_bits(c[n]));
        memcpy(&result[n], &sum, sizeof sum);
    }
}
extern "C" void emu_tensor_rows(int type, int k, int count, const uint32_t* a, const uint32_t* b,
                                const uint32_t* c, uint32_t* result) {
    for (int n = 0; n < count; ++n) {
        emu::RowOfA row;
        emu::ColumnsOfB columns;
        memcpy(row.bits, a + n * k, size_t(k) * 4);
        memcpy(columns.bits, b + n * k * emu::kAtOnce, size_t(k) * emu::kAtOnce * 4);
        emu::make_ready(type, row);
        emu::make_ready(type, columns);
        float sums[emu::kAtOnce];
        memcpy(sums, c + n * emu::kAtOnce, sizeof sums);
        emu::add_products(type, row, columns, sums);
        memcpy(result + n * emu::kAtOnce, sums, sizeof sums);
    }
}
