// min and max in all types, and the mathematical functions of device code.
#include "expect.cuh"

__global__ void least_and_most() {
    EXPECT(min(hidden(-3), 5), -3);
    EXPECT(max(hidden(-3), 5), 5);
    EXPECT(min(hidden(3u), ~0u), 3u);
    EXPECT(max(hidden(-1), 5u), ~0u);  // int beside unsigned: both as unsigned
    EXPECT(min(5u, hidden(-1)), 5u);
    EXPECT(min(hidden(-1ll << 40), 5ll), -(1ll << 40));
    EXPECT(max(hidden(~0ull), 5ull), ~0ull);
    EXPECT(max(hidden(-1ll), 5ull), ~0ull);
    EXPECT(min(hidden(2.5f), -1.5f), -1.5f);
    EXPECT(max(hidden(2.5f), 1e300), 1e300);  // float beside double: both as double
    EXPECT(min(hidden(2.5), 0.1f), double(0.1f));
    const float nan = hidden(NAN);  // a NaN loses against a number
    EXPECT(fminf(nan, 1.0f), 1.0f);
    EXPECT(fmaxf(1.0f, nan), 1.0f);
    EXPECT(min(nan, -2.0f), -2.0f);
    EXPECT(max(-2.0f, nan), -2.0f);
    EXPECT(fmin(double(nan), 3.0), 3.0);
    EXPECT(max(double(nan), 3.0), 3.0);
    EXPECT(isnan(fmaxf(nan, nan)), true);
    EXPECT(fmaxf(-INFINITY, nan) == -INFINITY, true);
    EXPECT(umin(hidden(7u), 9u), 7u);
    EXPECT(llmax(hidden(-7ll), -9ll), -7ll);
    EXPECT(abs(hidden(-4)), 4);
    EXPECT(abs(hidden(-4.5f)), 4.5f);
    EXPECT(fabsf(hidden(-0.25f)), 0.25f);
    EXPECT(llabs(hidden(-(1ll << 40))), 1ll << 40);
}

__global__ void singles() {
    const float x = hidden(0.7f), y = hidden(1.9f);
    const double wide = x, wide_y = y;
    EXPECT_NEAR(sqrtf(x), sqrt(wide), 1e-6);
    EXPECT_NEAR(rsqrtf(x), 1 / sqrt(wide), 1e-6);
    EXPECT_NEAR(cbrtf(x), pow(wide, 1.0 / 3), 1e-6);
    EXPECT_NEAR(rcbrtf(x), pow(wide, -1.0 / 3), 1e-6);
    EXPECT_NEAR(expf(x), exp(wide), 1e-6);
    EXPECT_NEAR(exp2f(x), pow(2.0, wide), 1e-6);
    EXPECT_NEAR(exp10f(x), pow(10.0, wide), 4e-6);
    EXPECT_NEAR(expm1f(x), exp(wide) - 1, 1e-6);
    EXPECT_NEAR(logf(x), log(wide), 1e-6);
    EXPECT_NEAR(log2f(x), log(wide) / log(2.0), 1e-6);
    EXPECT_NEAR(log10f(x), log(wide) / log(10.0), 1e-6);
    EXPECT_NEAR(log1pf(x), log(1 + wide), 1e-6);
    EXPECT_NEAR(powf(x, y), pow(wide, wide_y), 1e-6);
    EXPECT_NEAR(hypotf(x, y), sqrt(wide * wide + wide_y * wide_y), 1e-6);
    EXPECT_NEAR(rhypotf(x, y), 1 / sqrt(wide * wide + wide_y * wide_y), 1e-6);
    EXPECT_NEAR(norm3df(1.0f, 2.0f, hidden(2.0f)), 3.0, 1e-6);
    EXPECT_NEAR(norm4df(1.0f, 1.0f, 1.0f, hidden(1.0f)), 2.0, 1e-6);
    EXPECT_NEAR(sinf(x), sin(wide), 1e-6);
    EXPECT_NEAR(cosf(x), cos(wide), 1e-6);
    EXPECT_NEAR(tanf(x), tan(wide), 1e-6);
    EXPECT_NEAR(asinf(x), asin(wide), 1e-6);
    EXPECT_NEAR(acosf(x), acos(wide), 1e-6);
    EXPECT_NEAR(atanf(x), atan(wide), 1e-6);
    EXPECT_NEAR(atan2f(-x, -y), atan2(-wide, -wide_y), 1e-6);
    EXPECT_NEAR(sinhf(x) + coshf(x), exp(wide), 1e-6);
    EXPECT_NEAR(tanhf(x), tanh(wide), 1e-6);
    EXPECT_NEAR(atanhf(x), atanh(wide), 1e-6);
    EXPECT_NEAR(erff(hidden(0.5f)), 0.5204998778, 1e-6);
    EXPECT_NEAR(erfcf(hidden(0.5f)), 0.4795001222, 1e-6);
    EXPECT_NEAR(erfinvf(erff(x)), wide, 3e-6);
    EXPECT_NEAR(normcdff(hidden(1.0f)), 0.8413447461, 1e-6);
    EXPECT_NEAR(normcdfinvf(hidden(0.975f)), 1.959963985, 1e-5);
    EXPECT_NEAR(tgammaf(hidden(5.0f)), 24.0, 1e-4);
    EXPECT_NEAR(lgammaf(hidden(5.0f)), log(24.0), 1e-5);
    EXPECT_NEAR(sinpif(hidden(1.5f)), -1.0, 1e-7);
    EXPECT_NEAR(cospif(hidden(0.5f)), 0.0, 1e-7);
    float s, c;
    sincosf(x, &s, &c);
    EXPECT_NEAR(s, sin(wide), 1e-6);
    EXPECT_NEAR(c, cos(wide), 1e-6);
    sincospif(hidden(0.25f), &s, &c);
    EXPECT_NEAR(s, sqrt(0.5), 1e-6);
    EXPECT_NEAR(c, sqrt(0.5), 1e-6);
    EXPECT_NEAR(fdividef(x, y), wide / wide_y, 1e-6);
    EXPECT(fmaf(x, 0.0f, 2.0f), 2.0f);
}

__global__ void rounding_and_parts() {
    EXPECT(floorf(hidden(-1.5f)), -2.0f);
    EXPECT(ceilf(hidden(-1.5f)), -1.0f);
    EXPECT(truncf(hidden(-1.5f)), -1.0f);
    EXPECT(roundf(hidden(2.5f)), 3.0f);  // ties away from zero
    EXPECT(rintf(hidden(2.5f)), 2.0f);   // ties to even
    EXPECT(nearbyintf(hidden(3.5f)), 4.0f);
    EXPECT(lroundf(hidden(-2.5f)), -3);
    EXPECT(llrintf(hidden(-2.5f)), -2);
    EXPECT(fmodf(hidden(-7.5f), 2.0f), -1.5f);
    EXPECT(remainderf(hidden(7.5f), 2.0f), -0.5f);
    EXPECT(fdimf(hidden(3.0f), 5.0f), 0.0f);
    EXPECT(copysignf(hidden(3.0f), -0.0f), -3.0f);
    EXPECT(nextafterf(hidden(1.0f), 2.0f), 1.0f + 0x1p-23f);
    EXPECT(ldexpf(hidden(0.75f), 4), 12.0f);
    EXPECT(scalbnf(hidden(0.75f), -1), 0.375f);
    EXPECT(ilogbf(hidden(10.0f)), 3);
    EXPECT(logbf(hidden(0.3f)), -2.0f);
    int exponent;
    EXPECT(frexpf(hidden(12.0f), &exponent), 0.75f);
    EXPECT(exponent, 4);
    float whole;
    EXPECT(modff(hidden(-2.25f), &whole), -0.25f);
    EXPECT(whole, -2.0f);
    EXPECT(isnan(hidden(NAN)) && !isnan(hidden(1.0f)), true);
    EXPECT(isinf(hidden(-INFINITY)) && !isinf(hidden(1e30f)), true);
    EXPECT(isfinite(hidden(1e30f)) && !isfinite(hidden(NAN)), true);
    EXPECT(signbit(hidden(-0.0f)) != 0, true);
}

__global__ void doubles() {
    const double x = hidden(0.7);
    EXPECT_NEAR(rsqrt(x) * rsqrt(x) * x, 1.0, 1e-14);
    EXPECT_NEAR(rcbrt(hidden(8.0)), 0.5, 1e-15);
    EXPECT_NEAR(erf(x) + erfc(x), 1.0, 1e-15);
    EXPECT_NEAR(exp10(hidden(2.0)), 100.0, 1e-12);
    EXPECT_NEAR(sinpi(hidden(0.5)), 1.0, 1e-15);
    EXPECT_NEAR(cospi(hidden(1.0)), -1.0, 1e-15);
    EXPECT_NEAR(normcdf(hidden(0.0)), 0.5, 1e-15);
    EXPECT_NEAR(erfinv(erf(x)), x, 1e-12);
    EXPECT_NEAR(norm3d(1.0, 2.0, hidden(2.0)), 3.0, 1e-15);
    double s, c;
    sincos(x, &s, &c);
    EXPECT_NEAR(s * s + c * c, 1.0, 1e-15);
    // Without a suffix, the argument's type picks the function.
    EXPECT(sizeof(sqrt(1.0f)) + sizeof(exp(1.0f)) + sizeof(pow(1.0f, 1.0f)), 12);
    EXPECT(sizeof(sqrt(1.0)), 8);
    EXPECT(sizeof(rsqrt(1.0f)), 4);
    EXPECT_NEAR(std::exp(std::log(hidden(5.0f))), 5.0, 3e-6);
}

int main() {
    least_and_most<<<1, 1>>>();
    singles<<<1, 1>>>();
    rounding_and_parts<<<1, 1>>>();
    doubles<<<1, 1>>>();
    return finish();
}
