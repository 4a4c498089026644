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
    const Eight larger = (exponent[1] & later) | (exponent[0] & ~later);

    const int field = int(word >> 23 & 0xff), own_exponent = std::max(field, 1) - 127;
    const int64_t own = int64_t(word & 0x7fffff) | (field ? 0x800000 : 0);
    int most = own ? own_exponent : kZero, found = 0;
    for (int i = 0; i < 8; ++i) most = std::max(most, larger[i]), found |= any[i];
    fine = !found;

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

}  // namespace

float tensor_sum(int type, const Factor* a, const Factor* b, int k, float c) {
    const int fraction = type == kBf16 ? 14 : 20;  // bits of a product's
    uint32_t word;
    memcpy(&word, &c, sizeof word);
    bool fine;
    const float sum = plain_sum(kBelow - fraction, a, b, k / 8, word, fine);
    return fine && (word >> 23 & 0xff) != 0xff ? sum : sum_of_specials(a, b, k, c);
}

}  // namespace emu

// For the test that holds it to the card, bits for bits: of `count` sums, `k` operands each of a
// and b, and one of c.
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
