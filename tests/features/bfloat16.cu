// bfloat16: what it has in common with half, and its conversions.
#include <cuda_bf16.h>

#include "narrow.cuh"

struct Bfloat16 {
    using T = nv_bfloat16;
    using T2 = nv_bfloat162;
    static constexpr unsigned infinity = 0x7f80, third = 0x3eab;
    static constexpr double last_place = 0x1p-8;  // relative, half of it
    // 7 * 37 is half way from 258 to 260.
    static constexpr float tie_even = 260, tie_above = 260, tie_below = 258;
    static __host__ __device__ T tie_a() { return hidden(7.0f); }
    static __host__ __device__ T tie_b() { return hidden(37.0f); }
    static __host__ __device__ T from_bits(unsigned word) { return __ushort_as_bfloat16(word); }
    static __host__ __device__ unsigned to_bits(T a) { return __bfloat16_as_ushort(a); }
    static __host__ __device__ float2 widen(T2 a) { return __bfloat1622float2(a); }
    static __host__ __device__ T towards_zero(float x) { return __float2bfloat16_rz(x); }
    static __host__ __device__ T up(float x) { return __float2bfloat16_ru(x); }
    static __host__ __device__ T down(float x) { return __float2bfloat16_rd(x); }
};

#define BITS(value) __bfloat16_as_ushort(value)
__host__ __device__ void conversions() {
    EXPECT(BITS(__float2bfloat16(hidden(1.0f))), 0x3f80);
    EXPECT(BITS(__float2bfloat16(hidden(0.1f))), 0x3dcd);
    EXPECT(BITS(__float2bfloat16(hidden(-3e38f))), 0xff62);
    EXPECT(BITS(__float2bfloat16(hidden(3.4e38f))), 0x7f80);
    EXPECT(BITS(__float2bfloat16(hidden(0x1p-134f))), 0);  // a tie with the least
    EXPECT(BITS(__float2bfloat16(hidden(0x1.8p-134f))), 1);
    EXPECT(BITS(__float2bfloat16(hidden(NAN))), 0x7fff);
    EXPECT(BITS(__float2bfloat16_rn(hidden(257.0f))), 0x4380);
    EXPECT(BITS(__float2bfloat16_ru(hidden(257.0f))), 0x4381);
    EXPECT(BITS(__float2bfloat16_rz(hidden(-257.0f))), 0xc380);
    EXPECT(BITS(__float2bfloat16_rd(hidden(-257.0f))), 0xc381);
    EXPECT(BITS(__float2bfloat16_rz(hidden(3.4e38f))), 0x7f7f);
    // Through float this would be rounded twice, to 0x3f80.
    EXPECT(BITS(__double2bfloat16(hidden(1.0 + 0x1p-8 + 0x1p-40))), 0x3f81);
    EXPECT(BITS(__double2bfloat16(hidden(1e300))), 0x7f80);
    EXPECT(__bfloat162float(__ushort_as_bfloat16((unsigned short)hidden(0x0001))), 0x1p-133f);
    EXPECT(__bfloat162float(__short_as_bfloat16(short(hidden(0x4049)))), 3.140625f);
    EXPECT(__bfloat16_as_short(__float2bfloat16(hidden(-0.0f))), -32768);

    const nv_bfloat162 a = __floats2bfloat162_rn(hidden(1.0f), hidden(2.0f));
    const nv_bfloat162 b = __float22bfloat162_rn(make_float2(hidden(3.0f), 4.0f));
    EXPECT(float(__low2bfloat16(a)) + float(__high2bfloat16(b)), 5.0f);
    EXPECT(__high2float(__low2bfloat162(a)) + __low2float(__high2bfloat162(b)), 5.0f);
    EXPECT(__high2float(__lows2bfloat162(a, b)), 3.0f);
    EXPECT(__low2float(__highs2bfloat162(a, b)), 2.0f);
    EXPECT(__high2float(__bfloat162bfloat162(nv_bfloat16(5.0f))), 5.0f);
    EXPECT(__high2float(__float2bfloat162_rn(6.0f)), 6.0f);
    EXPECT(__low2float(__halves2bfloat162(a.y, b.y)), 2.0f);
    EXPECT(__high2float(make_bfloat162(a.x, b.x)), 3.0f);
}
__global__ void integers() {
    EXPECT(__bfloat162int_rn(nv_bfloat16(hidden(2.5f))), 2);
    EXPECT(__bfloat162int_rz(nv_bfloat16(hidden(-2.75f))), -2);
    EXPECT(__bfloat162int_ru(nv_bfloat16(hidden(2.25f))), 3);
    EXPECT(__bfloat162int_rd(nv_bfloat16(hidden(-2.25f))), -3);
    EXPECT(__bfloat162int_rz(nv_bfloat16(hidden(1e30f))), 2147483647);
    EXPECT(__bfloat162int_rz(nv_bfloat16(hidden(NAN))), 0);
    EXPECT(__bfloat162uint_rz(nv_bfloat16(hidden(-3.0f))), 0u);
    EXPECT(__bfloat162short_rn(nv_bfloat16(hidden(40000.0f))), 32767);
    EXPECT(__bfloat162ushort_rn(nv_bfloat16(hidden(1e9f))), 65535);
    EXPECT(__bfloat162ll_rz(nv_bfloat16(hidden(-0x1p40f))), -(1ll << 40));
    EXPECT(__bfloat162ull_rn(nv_bfloat16(hidden(1e30f))), ~0ull);
    EXPECT(BITS(__int2bfloat16_rn(hidden(257))), 0x4380);  // a tie, to 256
    EXPECT(BITS(__int2bfloat16_ru(hidden(257))), 0x4381);
    EXPECT(BITS(__int2bfloat16_rd(hidden(-257))), 0xc381);
    EXPECT(BITS(__uint2bfloat16_rn(hidden(~0u))), 0x4f80);
    EXPECT(BITS(__uint2bfloat16_rz(hidden(~0u))), 0x4f7f);
    EXPECT(BITS(__ushort2bfloat16_rn((unsigned short)hidden(65535))), 0x4780);
    EXPECT(BITS(__short2bfloat16_rn(short(hidden(-1)))), 0xbf80);
    // No float or double between: 2^61 + 2^53 is a tie, and the 1 decides.
    EXPECT(BITS(__ll2bfloat16_rn(hidden((1ll << 61) + (1ll << 53) + 1))), 0x5e01);
    EXPECT(BITS(__ll2bfloat16_rz(hidden(9223372036854775807ll))), 0x5eff);
    EXPECT(BITS(__ull2bfloat16_rn(hidden(~0ull))), 0x5f80);
}
__global__ void conversions_on_device() { conversions(); }

int main() {
    conversions();
    conversions_on_device<<<1, 1>>>();
    integers<<<1, 1>>>();
    return run<Bfloat16>();
}
