// Integer intrinsics, against loops over the bits.
#include "expect.cuh"

typedef unsigned long long ull;

__device__ unsigned random_word(unsigned i) {  // all kinds of words, 0 and ~0 among them
    if (i < 34) return i < 32 ? 1u << i : 0u - (i - 32);
    i = (i ^ 61) ^ (i >> 16), i *= 9, i ^= i >> 4, i *= 0x27d4eb2d;
    return i ^ (i >> 15);
}

__global__ void bits() {
    const unsigned x = random_word(threadIdx.x);
    const ull wide = ull(random_word(threadIdx.x * 3 % 256)) << 32 | x;
    int ones = 0, wide_ones = 0, first = 0, wide_first = 0, zeros = 32, wide_zeros = 64;
    unsigned mirrored = 0;
    ull wide_mirrored = 0;
    for (int i = 0; i < 64; ++i) {
        const int bit = wide >> i & 1;
        wide_ones += bit, wide_mirrored |= ull(bit) << (63 - i);
        if (bit) wide_zeros = 63 - i, wide_first = wide_first ? wide_first : i + 1;
        if (i < 32) {
            ones += bit, mirrored |= unsigned(bit) << (31 - i);
            if (bit) zeros = 31 - i, first = first ? first : i + 1;
        }
    }
    EXPECT(__popc(x), ones);
    EXPECT(__popcll(wide), wide_ones);
    EXPECT(__clz(x), zeros);
    EXPECT(__clzll(wide), wide_zeros);
    EXPECT(__ffs(x), first);
    EXPECT(__ffsll(wide), wide_first);
    EXPECT(__brev(x), mirrored);
    EXPECT(__brevll(wide), wide_mirrored);
}

__global__ void products() {
    const unsigned x = random_word(threadIdx.x), y = random_word(threadIdx.x * 7 % 256 + 40);
    EXPECT(__umulhi(x, y), unsigned(ull(x) * y >> 32));
    EXPECT(__mulhi(int(x), int(y)), int((long long)int(x) * int(y) >> 32));
    EXPECT(__mulhi(hidden(-1), 1), -1);
    EXPECT(__umul64hi(~0ull, ull(x)), x ? ull(x) - 1 : 0ull);
    EXPECT(__mul64hi(-1ll, (long long)(x) + 1), -1ll);
    EXPECT(__mul24(int(x & 0x7fffff), 3), int(x & 0x7fffff) * 3);
    EXPECT(__mul24(hidden(-5), 7), -35);
    EXPECT(__umul24(x, y), (x & 0xffffff) * (y & 0xffffff));
    int dot = 1000;
    unsigned udot = 1000;
    for (int i = 0; i < 32; i += 8) {
        dot += int((signed char)(x >> i)) * int((signed char)(y >> i));
        udot += (x >> i & 255) * (y >> i & 255);
    }
    EXPECT(__dp4a(int(x), int(y), 1000), dot);
    EXPECT(__dp4a(x, y, 1000u), udot);
    const int lo = int(short(x)) * (signed char)y + int(short(x >> 16)) * (signed char)(y >> 8);
    const int hi =
        int(short(x)) * (signed char)(y >> 16) + int(short(x >> 16)) * (signed char)(y >> 24);
    EXPECT(__dp2a_lo(int(x), int(y), 5), lo + 5);
    EXPECT(__dp2a_hi(int(x), int(y), 5), hi + 5);
}

__global__ void shifts_and_bytes() {
    const unsigned x = random_word(threadIdx.x), y = random_word(threadIdx.x + 100);
    const ull both = ull(y) << 32 | x;
    for (unsigned s = 0; s < 40; ++s) {
        EXPECT(__funnelshift_l(x, y, s), unsigned(both << (s & 31) >> 32));
        EXPECT(__funnelshift_r(x, y, s), unsigned(both >> (s & 31)));
        EXPECT(__funnelshift_lc(x, y, s), s < 32 ? unsigned(both << s >> 32) : x);
        EXPECT(__funnelshift_rc(x, y, s), s < 32 ? unsigned(both >> s) : y);
    }
    EXPECT(__byte_perm(hidden(0x33221100u), 0x77665544u, 0x0123), 0x00112233u);
    EXPECT(__byte_perm(hidden(0x33221100u), 0x77665544u, 0x7520), 0x77552200u);
    for (unsigned selector = 0; selector < 8; ++selector)
        EXPECT(__byte_perm(x, y, selector) & 255, unsigned(both >> 8 * selector) & 255);
}

__global__ void sums() {
    EXPECT(__sad(hidden(-5), 7, 100u), 112u);
    EXPECT(__sad(hidden(2147483647), -2147483647 - 1, 1u), 0u);  // 2^32 - 1 + 1
    EXPECT(__usad(hidden(5u), ~0u, 2u), ~0u - 3);
    EXPECT(__hadd(hidden(2147483647), 2147483645), 2147483646);
    EXPECT(__hadd(hidden(-3), 0), -2);  // rounds down
    EXPECT(__rhadd(hidden(-3), 0), -1);
    EXPECT(__rhadd(hidden(2147483647), 2147483646), 2147483647);
    EXPECT(__uhadd(hidden(~0u), ~0u - 2), ~0u - 1);
    EXPECT(__urhadd(hidden(~0u), ~0u - 1), ~0u);
}

int main() {
    bits<<<1, 256>>>();
    products<<<1, 256>>>();
    shifts_and_bytes<<<1, 64>>>();
    sums<<<1, 1>>>();
    return finish();
}
