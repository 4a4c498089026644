// Conversions: the four roundings; out of range, infinite and NaN as the PTX manual has it; bits.
#include "expect.cuh"

__global__ void roundings() {
    EXPECT(__float2int_rn(hidden(2.5f)), 2);  // ties go to the even number
    EXPECT(__float2int_rn(hidden(3.5f)), 4);
    EXPECT(__float2int_rn(hidden(-2.5f)), -2);
    EXPECT(__float2int_rz(hidden(-2.75f)), -2);
    EXPECT(__float2int_ru(hidden(-2.75f)), -2);
    EXPECT(__float2int_rd(hidden(-2.75f)), -3);
    EXPECT(__float2int_ru(hidden(2.25f)), 3);
    EXPECT(__float2int_rd(hidden(2.75f)), 2);
    EXPECT(__float2uint_rn(hidden(0.5f)), 0u);
    EXPECT(__float2uint_rn(hidden(3e9f)), 3000000000u);
    EXPECT(__float2uint_ru(hidden(0.01f)), 1u);
    EXPECT(__float2ll_rn(hidden(-0x1p40f)), -(1ll << 40));
    EXPECT(__float2ll_rd(hidden(-1.5f)), -2);
    EXPECT(__float2ull_rz(hidden(0x1p63f)), 1ull << 63);
    EXPECT(__double2int_rn(hidden(-1.5)), -2);
    EXPECT(__double2int_rz(hidden(1e9 + 0.75)), 1000000000);
    EXPECT(__double2uint_ru(hidden(4e9 - 0.5)), 4000000000u);
    EXPECT(__double2ll_rn(hidden(0x1p52 + 0.5)), 1ll << 52);
    EXPECT(__double2ull_rd(hidden(1e15 + 0.5)), 1000000000000000ull);

    EXPECT(__int2float_rn(hidden(16777217)), 16777216.0f);  // 2^24 + 1 lies between two floats
    EXPECT(__int2float_rz(hidden(16777219)), 16777218.0f);
    EXPECT(__int2float_ru(hidden(16777217)), 16777218.0f);
    EXPECT(__int2float_rd(hidden(-16777217)), -16777218.0f);
    EXPECT(__uint2float_rn(hidden(~0u)), 0x1p32f);
    EXPECT(__uint2float_rz(hidden(~0u)), 4294967040.0f);
    EXPECT(__ll2float_rn(hidden(1ll << 62)), 0x1p62f);
    EXPECT(__ull2float_rd(hidden(~0ull)), 0x1.fffffep63f);
    EXPECT(__int2double_rn(hidden(-2147483647)), -2147483647.0);
    EXPECT(__uint2double_rn(hidden(~0u)), 4294967295.0);
    EXPECT(__ll2double_rn(hidden((1ll << 53) + 1)), 0x1p53);
    EXPECT(__ll2double_ru(hidden((1ll << 53) + 1)), 0x1p53 + 2);
    EXPECT(__ull2double_rz(hidden(~0ull)), 0x1.fffffffffffffp63);
    EXPECT(__double2float_rn(hidden(0.1)), 0.1f);
    EXPECT(__double2float_ru(hidden(1.0 + 0x1p-40)), 1.0f + 0x1p-23f);
    EXPECT(__double2float_rd(hidden(1.0 + 0x1p-40)), 1.0f);
    EXPECT(__double2float_rz(hidden(-1.0 - 0x1p-40)), -1.0f);
    EXPECT(isinf(__double2float_rn(hidden(1e300))), true);
}

__global__ void saturation() {
    const int least = -2147483647 - 1, most = 2147483647;
    const long long least_ll = -9223372036854775807ll - 1, most_ll = 9223372036854775807ll;
    EXPECT(__float2int_rn(hidden(3e9f)), most);
    EXPECT(__float2int_rn(hidden(-3e9f)), least);
    EXPECT(__float2int_rz(hidden(INFINITY)), most);
    EXPECT(__float2int_rz(hidden(-INFINITY)), least);
    EXPECT(__float2uint_rn(hidden(-1.0f)), 0u);
    EXPECT(__float2uint_rz(hidden(5e9f)), ~0u);
    EXPECT(__float2uint_rz(hidden(INFINITY)), ~0u);
    EXPECT(__float2ll_rz(hidden(1e30f)), most_ll);
    EXPECT(__float2ll_rz(hidden(-1e30f)), least_ll);
    EXPECT(__float2ull_rz(hidden(-5.0f)), 0ull);
    EXPECT(__float2ull_rz(hidden(INFINITY)), ~0ull);
    EXPECT(__double2int_rn(hidden(2147483647.5)), most);
    EXPECT(__double2int_rz(hidden(-1e10)), least);
    EXPECT(__double2uint_rz(hidden(-0.75)), 0u);
    EXPECT(__double2uint_rz(hidden(1e10)), ~0u);
    EXPECT(__double2ll_rz(hidden(1e300)), most_ll);
    EXPECT(__double2ull_rz(hidden(1e300)), ~0ull);
    // NaN: 0 from float to 32 bits, and the top bit alone from double or to 64 bits.
    EXPECT(__float2int_rn(hidden(NAN)), 0);
    EXPECT(__float2int_rz(hidden(-NAN)), 0);
    EXPECT(__float2uint_rz(hidden(NAN)), 0u);
    EXPECT(__float2ll_rz(hidden(NAN)), least_ll);
    EXPECT(__float2ull_rz(hidden(NAN)), 1ull << 63);
    EXPECT(__double2int_rz(hidden(double(NAN))), least);
    EXPECT(__double2uint_rz(hidden(double(NAN))), 1u << 31);
    EXPECT(__double2ll_rz(hidden(double(NAN))), least_ll);
    EXPECT(__double2ull_rz(hidden(double(NAN))), 1ull << 63);
}

// A mask that one of two ways takes: a compiler that rounds in place loses it.
__device__ float cut(float x, int n) {
    return n > 3 ? __uint_as_float(__float_as_uint(x) & 0xffff0000u) : x;
}

__global__ void bits() {
    EXPECT(cut(hidden(1.2345678f), hidden(4)), 1.234375f);
    EXPECT(cut(hidden(1.2345678f), hidden(3)), 1.2345678f);
    EXPECT(__float_as_int(hidden(1.0f)), 0x3f800000);
    EXPECT(__float_as_uint(hidden(-0.0f)), 0x80000000u);
    EXPECT(__int_as_float(hidden(0x40490fdb)), 3.14159274f);
    EXPECT(__uint_as_float(hidden(0xff800000u)), -INFINITY);
    EXPECT(isnan(__int_as_float(hidden(0x7fc00000))), true);
    EXPECT(__double_as_longlong(hidden(-2.0)), (long long)0xc000000000000000ull);
    EXPECT(__longlong_as_double(hidden(0x3ff8000000000000ll)), 1.5);
    EXPECT(__double2hiint(hidden(1.0 + 0x1p-52)), 0x3ff00000);
    EXPECT(__double2loint(hidden(1.0 + 0x1p-52)), 1);
    EXPECT(__hiloint2double(hidden(0x40080000), 0), 3.0);
}

int main() {
    roundings<<<1, 1>>>();
    saturation<<<1, 1>>>();
    bits<<<1, 1>>>();
    return finish();
}
