// half: what it has in common with bfloat16, and its conversions.
#include <cuda_fp16.h>

#include "narrow.cuh"

struct Half {
    using T = half;
    using T2 = half2;
    static constexpr unsigned infinity = 0x7c00, third = 0x3555;
    static constexpr double last_place = 0x1p-11;  // relative, half of it
    // 3 * 683 is half way from 2048 to 2050.
    static constexpr float tie_even = 2048, tie_above = 2050, tie_below = 2048;
    static __host__ __device__ T tie_a() { return hidden(3.0f); }
    static __host__ __device__ T tie_b() { return hidden(683.0f); }
    static __host__ __device__ T from_bits(unsigned word) { return __ushort_as_half(word); }
    static __host__ __device__ unsigned to_bits(T a) { return __half_as_ushort(a); }
    static __host__ __device__ float2 widen(T2 a) { return __half22float2(a); }
    static __host__ __device__ T towards_zero(float x) { return __float2half_rz(x); }
    static __host__ __device__ T up(float x) { return __float2half_ru(x); }
    static __host__ __device__ T down(float x) { return __float2half_rd(x); }
};

__host__ __device__ void conversions() {
    EXPECT(__half_as_ushort(__float2half(hidden(1.0f))), 0x3c00);
    EXPECT(__half_as_ushort(__float2half(hidden(-65504.0f))), 0xfbff);
    EXPECT(__half_as_ushort(__float2half(hidden(65519.9f))), 0x7bff);
    EXPECT(__half_as_ushort(__float2half(hidden(65520.0f))), 0x7c00);  // a tie: infinity is even
    EXPECT(__half_as_ushort(__float2half(hidden(0x1p-25f))), 0);
    EXPECT(__half_as_ushort(__float2half(hidden(0x1.8p-25f))), 1);
    EXPECT(__half_as_ushort(__float2half(hidden(NAN))), 0x7fff);
    EXPECT(__half_as_ushort(__float2half_rn(hidden(0.1f))), 0x2e66);
    EXPECT(__half_as_ushort(__float2half_ru(hidden(0.1f))), 0x2e67);
    EXPECT(__half_as_ushort(__float2half_rz(hidden(1e9f))), 0x7bff);
    EXPECT(__half_as_ushort(__float2half_rd(hidden(1e9f))), 0x7bff);
    EXPECT(__half_as_ushort(__float2half_ru(hidden(1e9f))), 0x7c00);
    EXPECT(__half_as_ushort(__float2half_ru(hidden(-1e9f))), 0xfbff);
    EXPECT(__half_as_ushort(__float2half_ru(hidden(1e-30f))), 1);
    EXPECT(__half_as_ushort(__float2half_rd(hidden(1e-30f))), 0);
    // Through float this would be rounded twice, to 0x3c00.
    EXPECT(__half_as_ushort(__double2half(hidden(1.0 + 0x1p-11 + 0x1p-40))), 0x3c01);
    EXPECT(__half2float(__ushort_as_half((unsigned short)hidden(0x0001))), 0x1p-24f);
    EXPECT(__half2float(__short_as_half(short(hidden(0x7bff)))), 65504.0f);
    EXPECT(__half_as_short(__float2half(hidden(-0.0f))), -32768);

    const half2 a = __floats2half2_rn(hidden(1.0f), hidden(2.0f));
    const half2 b = __float22half2_rn(make_float2(hidden(3.0f), 4.0f));
    EXPECT(float(__low2half(a)) + float(__high2half(b)), 5.0f);
    EXPECT(__high2float(__low2half2(a)) + __low2float(__high2half2(b)), 5.0f);
    EXPECT(__high2float(__lows2half2(a, b)), 3.0f);
    EXPECT(__low2float(__highs2half2(a, b)), 2.0f);
    EXPECT(__high2float(__half2half2(half(5.0f))) + __high2float(__float2half2_rn(6.0f)), 11.0f);
    EXPECT(__low2float(__halves2half2(a.y, b.y)) + __high2float(make_half2(a.x, b.x)), 5.0f);
}
__global__ void integers() {
    EXPECT(__half2int_rn(half(hidden(2.5f))), 2);
    EXPECT(__half2int_rz(half(hidden(-2.75f))), -2);
    EXPECT(__half2int_ru(half(hidden(2.25f))), 3);
    EXPECT(__half2int_rd(half(hidden(-2.25f))), -3);
    EXPECT(__half2int_rz(half(hidden(INFINITY))), 2147483647);
    EXPECT(__half2int_rz(half(hidden(NAN))), 0);
    EXPECT(__half2uint_rz(half(hidden(-3.0f))), 0u);
    EXPECT(__half2short_rn(half(hidden(40000.0f))), 32767);
    EXPECT(__half2ushort_rn(half(hidden(40000.0f))), 40000);
    EXPECT(__half2ll_rz(half(hidden(-1000.5f))), -1000);
    EXPECT(__half2ull_rn(half(hidden(INFINITY))), ~0ull);
    EXPECT(__half_as_ushort(__int2half_rn(hidden(2049))), 0x6800);  // a tie, to 2048
    EXPECT(__half_as_ushort(__int2half_ru(hidden(2049))), 0x6801);
    EXPECT(__half_as_ushort(__int2half_rd(hidden(-2049))), 0xe801);
    EXPECT(__half_as_ushort(__uint2half_rz(hidden(~0u))), 0x7bff);
    EXPECT(__half_as_ushort(__ushort2half_rn((unsigned short)hidden(65535))), 0x7c00);
    EXPECT(__half_as_ushort(__short2half_rn(short(hidden(-1)))), 0xbc00);
    EXPECT(__half_as_ushort(__ll2half_rn(hidden(1ll << 60))), 0x7c00);
    EXPECT(__half_as_ushort(__ull2half_rn(hidden(3ull))), 0x4200);
}
__global__ void conversions_on_device() { conversions(); }

int main() {
    conversions();
    conversions_on_device<<<1, 1>>>();
    integers<<<1, 1>>>();
    return run<Half>();
}
