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

}  // namespace

float tensor_sum(int type, const Factor* a, const Factor* b, int k, float c) {
    const int fraction = type == kBf16 ? 14 : 20;  // bits of a product's
    uint32_t word;
    memcpy(&word, &c, sizeof word);
    const int field = int(word >> 23 & 0xff);
    bool special = field == 0xff;
    int64_t own = int64_t(word & 0x7fffff) | (field ? 0x800000 : 0);
    const int own_exponent = std::max(field, 1) - 127;
    int most = own ? own_exponent : kZero;
    if (word >> 31) own = -own;
    int32_t product[16], exponent[16];
    for (int i = 0; i < k; ++i) {
        product[i] = int32_t(a[i].significand) * b[i].significand;
        exponent[i] = a[i].exponent + b[i].exponent;
        special |= a[i].exponent >= kInfinite || b[i].exponent >= kInfinite;
        if (product[i]) most = std::max(most, exponent[i]);
    }
    if (special) return sum_of_specials(a, b, k, c);
    // A term is brought to a multiple of 2^(most - kBelow), toward zero.
    auto aligned = [most](int64_t significand, int bits, int at) -> int64_t {
        const int shift = kBelow - bits - (most - at);
        if (shift >= 0) return significand << shift;
        if (shift < -62) return 0;
        return significand < 0 ? -(-significand >> -shift) : significand >> -shift;
    };
    int64_t sum = own ? aligned(own, 23, own_exponent) : 0;
    for (int i = 0; i < k; ++i)
        if (product[i]) sum += aligned(product[i], fraction, exponent[i]);
    return cut(sum, most - kBelow);
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
